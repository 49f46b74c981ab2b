import { type BigIntStats, statSync } from 'node:fs';
import { trustFile, type WorkspaceTrust, workspaceConfigFile, workspaceTrust } from '../config/index.ts';

/** Trust of one workspace as its next start will find it, cheap enough for every request. */
export interface TrustView {
  /** @returns the same object until something changes */
  now(): WorkspaceTrust;
  /** As `now`, at most `staleMs` old: without a system call most of the time. */
  recent(): WorkspaceTrust;
}

const staleMs = 20;

/** Watches the two files that decide about a workspace's trust. They are read again only when one of them changes. */
export function createTrustView(home: string, workspacePath: string): TrustView {
  const files = [trustFile(home), workspaceConfigFile(workspacePath)];
  let seen = '';
  let known: WorkspaceTrust = { trust: 'restricted', restrictedSettings: [] };
  let checkedAt = Number.NEGATIVE_INFINITY;

  function now(): WorkspaceTrust {
    checkedAt = performance.now();
    const found = files.map(signatureOf).join(' ');
    if (found !== seen) {
      known = workspaceTrust({ home, workspace: workspacePath });
      seen = found;
    }
    return known;
  }

  return { now, recent: () => (performance.now() - checkedAt < staleMs ? known : now()) };
}

/** Differs when a file does; every change of content or owner changes the time of change. */
function signatureOf(file: string): string {
  let stats: BigIntStats | undefined;
  try {
    stats = statSync(file, { bigint: true, throwIfNoEntry: false });
  } catch (error) {
    // A directory on the way that cannot be entered: the start of the workspace names it.
    return String((error as NodeJS.ErrnoException).code);
  }
  return stats === undefined ? 'none' : `${stats.ino}/${stats.size}/${stats.ctimeNs}/${stats.mtimeNs}`;
}
