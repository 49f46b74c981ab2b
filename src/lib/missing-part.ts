/** Next step of a user whose running server has lost parts of its program. */
export const replacedProgramAdvice = 'Oratorio was updated: run `oratorio restart`.';

const codes: ReadonlySet<unknown> = new Set(['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND']);

/** Whether a part of this program could not be loaded: an upgrade in place removes parts that a running process has not loaded yet. */
export const isMissingPart = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && codes.has(error.code);
