import { setTimeout as sleep } from 'node:timers/promises';
import { defaults, type ProcessIdentity } from '../protocol/index.ts';
import { monotonicMs } from './clock.ts';
import { findProcess, identityOf, isAlive } from './identity.ts';
import { isProvenOurs } from './proof.ts';
import { carries, type ScannedProcess, scanProcesses } from './scan.ts';
import { sendToGroup, signalLeader, signalProcess } from './signals.ts';

/** Result of a sweep: the processes that remain, if any. */
export interface SweepReport {
  /** Number of processes that the sweep found and saw go, without those that the first signal ended. */
  readonly ended: number;
  /** Still alive at the deadline: in uninterruptible sleep, or another user's. */
  readonly remaining: readonly ProcessIdentity[];
  /** Something may still be there which cannot be proved to be ours, and was therefore not touched. */
  readonly uncertain: boolean;
}

interface Leftovers {
  readonly group: readonly ProcessIdentity[];
  readonly escaped: readonly ProcessIdentity[];
  readonly uncertain: boolean;
}

/** Between SIGTERM and SIGKILL for remaining processes of a dead leader. */
const sweepGraceMs = 500;
/** Looking for a process costs microseconds with `/proc`, and a run of `ps` elsewhere. */
const pollMs = process.platform === 'linux' ? { first: 4, last: 50 } : { first: 50, last: 250 };

/**
 * A managed process with all its descendants: the members of its group, and those that left the group but carry the
 * marker. The number of a group whose leader has died may be used again by other programs, so a group is ours only while it
 * holds a known process: the proven leader (as a zombie too), a process that was a member when the leader died, or one with the marker.
 */
export class ProcessTree {
  readonly leader: ProcessIdentity;
  readonly marker: string;
  readonly #known = new Map<number, string>();

  /** @param isChild we have spawned the leader, and nothing but this process knows its identity */
  constructor(leader: ProcessIdentity, marker: string, isChild = false) {
    this.leader = leader;
    this.marker = marker;
    if (isChild) this.remember([leader]);
    else this.provesLeader();
  }

  /** Whether the leader was ever proved to be ours (see `isProvenOurs`): only then it may be signalled. */
  provesLeader(): boolean {
    const { leader, marker } = this;
    if (this.#known.get(leader.pid) === leader.startedTicks) return true;
    if (!isProvenOurs(leader, marker)) return false;
    this.remember([leader]);
    return true;
  }

  /** Takes all present members of the group for ours: only for a parent, at the moment its child has died. */
  remember(members: readonly { pid: number; startedTicks: string }[]): void {
    for (const { pid, startedTicks } of members) this.#known.set(pid, startedTicks);
  }

  /** Resolves when the leader, its group and all who carry the marker have gone. Rejects only when `signal` aborts. */
  async gone(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const { group, escaped, uncertain } = await this.#leftovers();
      signal?.throwIfAborted();
      const left = [...group, ...escaped];
      if (left.length === 0 && !uncertain) return;
      if (left.length > 0) await untilGone(left, Number.POSITIVE_INFINITY, signal);
      else await sleep(1_000, undefined, signal && { signal });
    }
  }

  /** Ends all of them: SIGTERM (and SIGCONT, for a stopped process would never see it), SIGKILL after `graceMs`; gives up after `verifyMs`. */
  async end(graceMs = sweepGraceMs, verifyMs: number = defaults.supervise.killVerifyMs): Promise<SweepReport> {
    const began = monotonicMs();
    const seen = new Set<string>();
    for (;;) {
      const leftovers = await this.#leftovers();
      const left = [...leftovers.group, ...leftovers.escaped];
      for (const { pid, startedTicks } of left) seen.add(`${pid} ${startedTicks}`);
      const elapsed = monotonicMs() - began;
      if (left.length === 0 || elapsed >= graceMs + verifyMs) {
        return { ended: seen.size - left.length, remaining: left, uncertain: leftovers.uncertain };
      }
      const gentle = elapsed < graceMs;
      this.#signal(leftovers, gentle ? ['SIGTERM', 'SIGCONT'] : ['SIGKILL']);
      await untilGone(left, gentle ? graceMs - elapsed : 200);
    }
  }

  #signal({ group, escaped }: Leftovers, signals: NodeJS.Signals[]): void {
    for (const signal of signals) {
      if (group.some((member) => isAlive(member) === 'alive')) sendToGroup(this.leader.pid, signal);
      for (const member of escaped) signalProcess(member, signal);
    }
  }

  async #leftovers(): Promise<Leftovers> {
    if (!this.#isOfThisMachine()) return { group: [], escaped: [], uncertain: findProcess(this.leader) === 'unknown' };
    let all: ScannedProcess[];
    try {
      all = await scanProcesses();
    } catch {
      return { group: [], escaped: [], uncertain: true };
    }
    const members = all.filter(({ group }) => group === this.leader.pid);
    const living = members.filter(({ zombie }) => !zombie);
    const ours = members.some((entry) => this.#vouchesFor(entry));
    if (ours) this.remember(living);
    // A process that was adopted may not lead a group at all; then it counts alone.
    const elsewhere = all.filter(({ zombie, group }) => !zombie && group !== this.leader.pid);
    return {
      group: ours ? living.map(identityOf) : [],
      escaped: elsewhere.filter((entry) => this.#vouchesFor(entry)).map(identityOf),
      uncertain:
        (!ours && living.some(({ marker }) => marker === 'unknown')) ||
        all.some((entry) => !entry.zombie && this.#isLeader(entry) && !this.#vouchesFor(entry)),
    };
  }

  /** Pids of another boot or namespace say nothing about the table we can read. */
  #isOfThisMachine(): boolean {
    const { bootId, pidNamespace } = identityOf(this.leader);
    return bootId !== '' && this.leader.bootId === bootId && this.leader.pidNamespace === pidNamespace;
  }

  #vouchesFor(entry: ScannedProcess): boolean {
    return this.#known.get(entry.pid) === entry.startedTicks || this.#isMarked(entry);
  }

  #isLeader(entry: ScannedProcess): boolean {
    return entry.pid === this.leader.pid && entry.startedTicks === this.leader.startedTicks;
  }

  #isMarked(entry: ScannedProcess): boolean {
    return carries(entry, this.marker);
  }
}

/**
 * After a crash of the Hub, ends the remaining processes of a managed process: the process itself if `identity` still matches, its
 * group if it is proved to be ours, and all carriers of `marker`. At once, by SIGKILL. Touches nothing when the identity
 * cannot be judged from here, and not the process when it is not proved to be ours: then the report is uncertain.
 */
export async function killGroupVerified(identity: ProcessIdentity, marker: string): Promise<SweepReport> {
  if (findProcess(identity) === 'unknown') return { ended: 0, remaining: [], uncertain: true };
  const tree = new ProcessTree(identity, marker);
  if (tree.provesLeader()) signalLeader(identity, 'SIGKILL');
  return tree.end(0);
}

/** Waits until none of `processes` is alive, or `ms` are over. */
async function untilGone(processes: readonly ProcessIdentity[], ms: number, signal?: AbortSignal): Promise<void> {
  const deadline = monotonicMs() + ms;
  for (let wait = pollMs.first; ; wait = Math.min(wait * 1.5, pollMs.last)) {
    if (!processes.some((member) => isAlive(member) !== 'gone')) return;
    const left = deadline - monotonicMs();
    if (left <= 0) return;
    await sleep(Math.min(wait, left), undefined, signal && { signal });
  }
}
