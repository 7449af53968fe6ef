"""What a step costs: the model's operators, priced one by one."""
