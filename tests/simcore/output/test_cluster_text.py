from simcore.output.cluster_text import described


def test_a_split_is_told_only_where_it_is_not_by_tensor_alone():
    assert described({"accelerator": "h100-sxm"}) == "1 h100-sxm"
    assert described({"accelerator": "h100-sxm", "tensor_parallel": 4}) == "4 h100-sxm"
    both = {"accelerator": "h100-sxm", "tensor_parallel": 4, "pipeline_parallel": 2}
    assert described(both) == "8 h100-sxm (tensor 4, pipeline 2)"
    experts = {"accelerator": "b200", "data_parallel": 8, "expert_parallel": 8}
    assert described(experts) == "8 b200 (data 8, expert 8)"
