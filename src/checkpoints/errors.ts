/** A checkpoint or a restore that cannot be made. The message is for people and quotes no content. */
export class CheckpointError extends Error {
  override readonly name = 'CheckpointError';
}

export const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | undefined)?.code;
