"""Gates, conditions and checks of advice of particular pipelines, by the names that their files use."""
