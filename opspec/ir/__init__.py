"""The typed, frozen intermediate representation.

``dtypes`` storage types · ``integers`` extents, indices and bounds ·
``values`` what tensors hold · ``program`` statements, kernels, ops, modules.
"""
