"""Small trained models, one file a system, to look into: each with its checkpoints from initialisation to trained.

Nothing here imports inspector; `build()` of a file returns a `base.Sample`. Rewrite the checkpoints with
`python -m sample_models.train all`.
"""
