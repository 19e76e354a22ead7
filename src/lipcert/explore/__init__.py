"""`lipcert explore`: a page to train, classify, attack and look. It needs lipcert[explore]."""
