/** `oratorio doctor`: read-only checks with the next command for each finding. Never here: a repair, a prompt, colours. */
export { examine } from './examine.ts';
export { type Finding, type FindingStatus, verdictOf } from './finding.ts';
