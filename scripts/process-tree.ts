/** Ends a process with all its descendants, in any process group. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/** Children of every process by the process id of their parent. */
function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, number[]>();
  for (const [pid, parent] of existsSync('/proc/self/stat') ? fromProc() : fromPs()) {
    const siblings = found.get(parent);
    if (siblings) siblings.push(pid);
    else found.set(parent, [pid]);
  }
  return found;
}

function fromProc(): [number, number][] {
  return readdirSync('/proc').flatMap((name): [number, number][] => {
    const pid = Number(name);
    if (!Number.isInteger(pid)) return [];
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // `pid (name) state ppid …`; the name may contain anything.
      return [[pid, Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])]];
    } catch {
      // The process has already ended.
      return [];
    }
  });
}

function fromPs(): [number, number][] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return stdout
    .trim()
    .split('\n')
    .map((line): [number, number] => {
      const [pid, parent] = line.trim().split(/\s+/).map(Number);
      return [pid ?? 0, parent ?? 0];
    });
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already ended.
  }
}

/**
 * Kills `pid` and all its descendants. Each is stopped before its children are listed, so that none can start another one
 * meanwhile. A descendant whose parent had ended before the call is not found.
 */
export function killTree(pid: number): void {
  const found = new Set([pid]);
  let isGrowing = true;
  while (isGrowing) {
    const before = found.size;
    for (const each of found) send(each, 'SIGSTOP');
    const children = childrenByParent();
    for (const each of found) for (const child of children.get(each) ?? []) found.add(child);
    isGrowing = found.size > before;
  }
  for (const each of found) send(each, 'SIGKILL');
}
