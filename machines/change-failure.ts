/** Failure that stopped a change of a stack. Never contains a secret. */
export interface ChangeFailure {
  readonly code: string;
  readonly message: string;
}

/** Converts an error; one without a code is a bug. */
export function changeFailureOf(error: unknown): ChangeFailure {
  const { code, message } = (error ?? {}) as Readonly<Record<string, unknown>>;
  return {
    code: typeof code === 'string' ? code : 'internalError',
    message: typeof message === 'string' ? message : String(error),
  };
}

export const cancelledChange: ChangeFailure = { code: 'cancelled', message: 'It was cancelled.' };
