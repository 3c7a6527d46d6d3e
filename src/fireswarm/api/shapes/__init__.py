"""What goes over the wire, each field with its meaning and an example: the OpenAPI document is made of these."""
