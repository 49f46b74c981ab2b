import { chmodSync, statSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { readJson, writeFileAtomic } from '../../../lib/index.ts';
import type { Logger } from '../../../log/index.ts';

/** Key pair of this Hub for push services (RFC 8292), base64url. */
const PushKeys = v.object({
  /** Uncompressed point of P-256. */
  publicKey: v.pipe(v.string(), v.regex(/^B[\w-]{86}$/)),
  privateKey: v.pipe(v.string(), v.regex(/^[\w-]{43}$/)),
});
export type PushKeys = v.InferOutput<typeof PushKeys>;

/**
 * Reads `push-key.json` (0600), or makes it. Browsers bind their subscriptions to the key, so that it stays the same for good; with
 * another one every browser has to subscribe again.
 *
 * @throws Error when it can be neither read nor written
 */
export function loadPushKeys(statePath: string, logger: Logger): PushKeys {
  const file = pushKeyFile(statePath);
  const read = readJson(file, PushKeys);
  if (read.kind === 'ok') {
    // A copy of the file may have been opened to others.
    if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
    return read.value;
  }
  if (read.kind === 'invalid')
    logger.warn('the key for push services cannot be used and is replaced; turn notices on again in each browser', {
      problem: read.problem,
    });
  const keys = makePushKeys();
  savePushKeys(statePath, keys);
  return keys;
}

export const pushKeyFile = (statePath: string): string => join(statePath, 'push-key.json');

export function savePushKeys(statePath: string, keys: PushKeys): void {
  writeFileAtomic(pushKeyFile(statePath), `${JSON.stringify(keys)}\n`);
}

function makePushKeys(): PushKeys {
  const { generateKeyPairSync } = process.getBuiltinModule('node:crypto');
  const {
    x = '',
    y = '',
    d = '',
  } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    format: 'jwk',
  });
  const point = Buffer.concat([Buffer.of(4), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  return { publicKey: point.toString('base64url'), privateKey: d };
}
