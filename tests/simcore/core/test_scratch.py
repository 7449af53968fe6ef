"""What a killed process left is removed by the next; what somebody still uses is not."""

from simcore.core.scratch import remove_left_over, scratch_folder


def test_a_folder_whose_process_was_removing_it_goes_at_once(tmp_path):
    left = tmp_path / ".servetwin-abc"
    (left / "old").mkdir(parents=True)
    remove_left_over(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_or_just_made_stays(tmp_path):
    just_made = tmp_path / ".servetwin.abc"
    just_made.mkdir()
    with scratch_folder(tmp_path) as used:
        remove_left_over(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([used, just_made])


def test_what_is_no_scratch_folder_stays(tmp_path):
    mine = tmp_path / ".servetwin-notes"
    mine.mkdir()
    (mine / "mine.txt").write_text("mine")
    remove_left_over(tmp_path)
    assert (mine / "mine.txt").read_text() == "mine"
