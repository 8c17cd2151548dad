"""Statistics in a panel: sheets as tables that sort, with bars for shares and ways to where things happened."""
