import { DeployError } from './errors.ts';

/** Turns what the system says of a file into an error for people, with a full disk told apart. Made for `catch`. */
export const onFile =
  (path: string) =>
  (error: NodeJS.ErrnoException): never => {
    const code = error.code === 'ENOSPC' || error.code === 'EDQUOT' ? 'diskFull' : 'fileFailed';
    throw new DeployError(code, `${path}: ${error.code ?? error.message}.`, null, { cause: error });
  };
