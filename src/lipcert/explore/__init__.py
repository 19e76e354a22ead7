"""`lipcert explore`: a page on which one trains, classifies, attacks and looks. Needs lipcert[explore]."""
