/**
 * Returns the text of a thrown value: the message of an error, `String(error)` of any other value. Holds no stack: log the
 * error itself where the stack helps.
 */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
