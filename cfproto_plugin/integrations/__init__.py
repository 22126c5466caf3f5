"""One module per outside tool. Nothing here is imported, and no tool is, before it is used."""
