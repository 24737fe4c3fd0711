"""The commands of `recipes`, a module a group."""
