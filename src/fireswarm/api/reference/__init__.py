"""The reference of the API as a page, made from its OpenAPI document. It needs no script and no other host."""
