import { DeployError } from './errors.ts';

/** Converts an error of the file system for users; a full disk has a code of its own. Made for `catch`. */
export const onFile =
  (path: string) =>
  (error: NodeJS.ErrnoException): never => {
    const code = error.code === 'ENOSPC' || error.code === 'EDQUOT' ? 'diskFull' : 'fileFailed';
    throw new DeployError(code, `${path}: ${error.code ?? error.message}.`, null, { cause: error });
  };
