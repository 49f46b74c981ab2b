import type { Test } from 'tap';
import type { SupervisionPolicy } from '../../../machines/index.ts';
import { flush } from '../harness.ts';
import { policy, Workspace } from '../worlds.ts';

/** Which test file walks the transitions from which top-level states. Together they must be all of the machine. */
export const sources = {
  atRest: ['(any)', 'stopped', 'asleep', 'exited'],
  starting: ['starting'],
  running: ['running', 'unhealthy'],
  stopping: ['stopping'],
} as const;

/** Steps that lead a fresh workspace somewhere. */
export const to = {
  rest: flush,
  preparing: (world: Workspace) => world.ensure(),
  async adopting(world: Workspace) {
    world.send({ type: 'ADOPT', sidecar: 'none' });
    await flush();
  },
  async spawning(world: Workspace) {
    await world.ensure();
    await world.prepared();
  },
  async readyingPlace(world: Workspace) {
    await world.ensure();
    await world.preparedInPlace();
  },
  async runningInPlace(world: Workspace) {
    await to.readyingPlace(world);
    await world.placeReady();
    await world.spawned();
    await world.ready();
  },
  async unhealthyWithoutPlace(world: Workspace) {
    await to.runningInPlace(world);
    await world.probeFailed(3);
    await world.place('PLACE.LOST');
  },
  async probing(world: Workspace) {
    await to.spawning(world);
    await world.spawned();
  },
  async aborting(world: Workspace) {
    await to.probing(world);
    await world.notReady();
  },
  async proxying(world: Workspace) {
    await world.ensure('keep');
    await world.prepared();
  },
  running: (world: Workspace) => world.run(),
  runningWithSidecar: (world: Workspace) => world.run('keep'),
  async externalProbing(world: Workspace) {
    await world.ensure();
    await world.prepared('external');
    await world.spawned();
  },
  async external(world: Workspace) {
    await to.externalProbing(world);
    await world.ready();
  },
  async unhealthy(world: Workspace) {
    await world.run();
    await world.probeFailed(3);
  },
  async terminating(world: Workspace) {
    await world.run();
    await world.stop();
  },
  async killing(world: Workspace) {
    await to.terminating(world);
    await world.pass(policy.gracefulStopMs);
  },
  async agreeing(world: Workspace) {
    await world.run();
    await world.probePassed(world.context.policy.idleStopMs);
  },
  async fallingAsleep(world: Workspace) {
    await to.agreeing(world);
    await world.decided(true);
  },
  async asleep(world: Workspace) {
    await to.fallingAsleep(world);
    await world.exited(0);
  },
  async stoppingSidecar(world: Workspace) {
    await to.runningWithSidecar(world);
    await world.stop();
    await world.exited(0);
  },
  async backingOff(world: Workspace) {
    await world.run();
    await world.exited(1);
  },
  async resting(world: Workspace) {
    await world.run();
    await world.exited(0);
  },
  /** The sidecar is stopping, because its server must not restart. */
  async restingWhileSidecarLeaves(world: Workspace) {
    await to.runningWithSidecar(world);
    await world.exited(0);
  },
};

export const withPolicy = (changes: Partial<SupervisionPolicy>) => () => new Workspace(changes);
export const commands = (world: Workspace) => world.os.last('server').commands;
export const sidecarCommands = (world: Workspace) => world.os.last('sidecar').commands;

/** Checks that no process runs and that only the named actors exist. */
export function isClean(t: Test, world: Workspace, children: string[] = []): void {
  t.same(world.os.live('server'), [], 'no server lives');
  t.same(world.children, children, 'no actor is left');
  t.same(world.errors, []);
}
