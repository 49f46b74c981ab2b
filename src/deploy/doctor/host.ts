import { Resolver } from 'node:dns/promises';
import { statfs } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { limits } from './limits.ts';
import type { HostProbes } from './types.ts';

/** Probes of this machine. Names are resolved by name servers only: GitHub does not see `/etc/hosts`. */
export const thisHost: HostProbes = {
  async freeBytes(path) {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  },
  async resolve(name, signal) {
    const resolver = new Resolver({ timeout: limits.askMs / 2, tries: 2 });
    const cancel = (): void => resolver.cancel();
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const found = await Promise.all([noneWithout(resolver.resolve4(name)), noneWithout(resolver.resolve6(name))]);
      return found.flat();
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  },
  addresses: () => Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address)),
  uid: () => process.getuid?.() ?? null,
  now: () => Date.now(),
};

/** There is no such name, or it has no address of this kind. */
const noneWithout = (asked: Promise<string[]>): Promise<string[]> =>
  asked.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOTFOUND' || error.code === 'ENODATA') return [];
    throw error;
  });
