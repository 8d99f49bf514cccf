"""From tile programs to text: Triton kernels, launchers, drivers.

``names`` keeps user names clear of the target's · ``expressions`` and ``triton`` print tile
programs · ``launcher`` and ``driver`` decide what stands around them · ``package`` fills the
templates and yields the files of a generated package.
"""
