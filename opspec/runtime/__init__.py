"""What generated code imports: torch, triton and the standard library, nothing of the compiler."""
