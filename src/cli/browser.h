/* browser.h - `hotcell browser`: where to watch and take over a browser in a sandbox. */
#pragma once

struct cli;
int browser_run(struct cli *c);
