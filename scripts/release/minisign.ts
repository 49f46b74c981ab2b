/** Signs a file in the format of minisign (https://jedisct1.github.io/minisign/), so that minisign can also verify it. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Length of a raw Ed25519 public key, which ends its DER form. */
const rawKeyBytes = 32;

/** Private key of a release, and the file text of its public key. */
export interface ReleaseKey {
  readonly publicKey: string;
  /** @param comment trusted comment, which is also signed */
  readonly sign: (message: Buffer, comment: string) => string;
}

const base64 = (...parts: readonly Uint8Array[]): string => Buffer.concat(parts).toString('base64');

/** Key id in signatures. Derived from the key, so it needs no separate file. */
const keyIdOf = (raw: Buffer): Buffer => createHash('sha256').update(raw).digest().subarray(0, 8);

/** @param key private Ed25519 key */
export function releaseKey(key: KeyObject): ReleaseKey {
  if (key.asymmetricKeyType !== 'ed25519')
    throw new Error('The key of a release must be an Ed25519 key: openssl genpkey -algorithm ed25519 -out FILE');
  const raw = createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(-rawKeyBytes);
  const id = keyIdOf(raw);
  return {
    publicKey: `untrusted comment: public key of the releases of Oratorio\n${base64(Buffer.from('Ed'), id, raw)}\n`,
    sign(message, comment) {
      const signature = sign(null, createHash('blake2b512').update(message).digest(), key);
      const global = sign(null, Buffer.concat([signature, Buffer.from(comment)]), key);
      return `untrusted comment: signature of a release of Oratorio\n${base64(Buffer.from('ED'), id, signature)}\ntrusted comment: ${comment}\n${base64(global)}\n`;
    },
  };
}

/** Reads a private key in PEM: `openssl genpkey -algorithm ed25519 -out FILE`. */
export const readReleaseKey = (file: string): ReleaseKey => releaseKey(createPrivateKey(readFileSync(file)));
