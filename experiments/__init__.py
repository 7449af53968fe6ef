"""Many runs of one scenario: comparisons of variants, and uncertainty bands."""
