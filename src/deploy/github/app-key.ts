import { GitHubError, readPrivateKey, usablePrivateKey } from '../../github/index.ts';
import { DeployError } from '../errors.ts';

/** The key of the App, checked, as PKCS#8 in PEM. @param where name in messages @throws DeployError secretRefused */
export const appKey = (text: string, where: string): string => asSecret(() => usablePrivateKey(text, where));

/** The key of the App from its file. @throws DeployError secretRefused */
export const appKeyIn = (path: string): string => asSecret(() => readPrivateKey(path).pem);

function asSecret(read: () => string): string {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof GitHubError)) throw error;
    const hint = 'Make a new private key on the page of the App and use the file it gives you.';
    throw new DeployError('secretRefused', `${error.message}.`, hint);
  }
}
