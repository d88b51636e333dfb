"""The hostile names that every shown form has to survive."""

HOSTILE = '<script>alert("x")</script>&\'</title></style></svg>"'
