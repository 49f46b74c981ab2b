import type { ReviewRun, ReviewRunState } from '../../../src/protocol/index.ts';
import { killIfThere } from '../../hub/harness.ts';
import { agentServersUnder } from '../harness.ts';
import type { Scene } from './scene.ts';

export const ends: readonly ReviewRunState[] = ['done', 'failed', 'cancelled', 'superseded'];
export type Victim = 'backend' | 'agent server';

/** A pull request that has been brought into a state; `release` lets it continue. */
export interface Caught {
  readonly number: number;
  readonly state: ReviewRunState;
  readonly release: () => void;
}

type FilesOf = (number: number) => Readonly<Record<string, string>>;

/** Pull requests that are brought into states, one after the other, and the moment in which a process is killed. */
export class Crash {
  readonly scene: Scene;
  readonly caught: Caught[] = [];
  readonly #first: number;
  readonly #filesOf: FilesOf;

  /** @param first - number of its first pull request; @param filesOf - changed files of each */
  constructor(scene: Scene, first: number, filesOf: FilesOf) {
    this.scene = scene;
    this.#first = first;
    this.#filesOf = filesOf;
  }

  #next(): number {
    return this.#first + this.caught.length;
  }

  async #open(number: number): Promise<void> {
    await this.scene.openPull(number, this.#filesOf(number));
  }

  #keep(number: number, state: ReviewRunState, release: () => void = () => undefined): Caught {
    const caught = { number, state, release };
    this.caught.push(caught);
    return caught;
  }

  /** Resolves when the backend reports the run of a pull request in `state`. */
  #isIn(number: number, state: ReviewRunState): Promise<ReviewRun> {
    const { until, api } = this.scene;
    const look = async () => {
      const run = (await api.pull(number))?.runs[0];
      if (run && ends.includes(run.state)) throw new Error(`${number} was ${run.state} before it was ${state}`);
      return run?.state === state && run;
    };
    return until(`${number} is ${state}`, look, api.newsOf(number));
  }

  /** @param round - of the model: 0 before its first request, 2 after it has submitted its draft */
  async reviewing(round = 0): Promise<Caught> {
    const number = this.#next();
    const held = this.scene.reviewer.hold((turn) => turn.number === number && turn.round === round);
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'reviewing');
    return this.#keep(number, 'reviewing', held.release);
  }

  async publishing(when: 'before' | 'after'): Promise<void> {
    const number = this.#next();
    const path = `/repos/acme/shop/pulls/${number}/reviews`;
    const held = this.scene.forge.faults.hold((method, asked) => method === 'POST' && asked === path, when);
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'publishing');
    this.#keep(number, 'publishing', held.release);
  }

  async backingOff(): Promise<void> {
    const number = this.#next();
    this.scene.reviewer.refuseOnce((turn) => turn.number === number);
    await this.#open(number);
    await this.#isIn(number, 'backingOff');
    this.#keep(number, 'backingOff');
  }

  async preparing(): Promise<void> {
    const number = this.#next();
    const held = this.scene.forge.faults.hold((_, path) => path.includes('.git/'));
    await this.#open(number);
    await held.reached;
    await this.#isIn(number, 'preparing');
    this.#keep(number, 'preparing', held.release);
  }

  async queued(): Promise<void> {
    const number = this.#next();
    await this.#open(number);
    await this.#isIn(number, 'queued');
    this.#keep(number, 'queued');
  }

  /** Suspends the agent server, so that the cancelled turn does not end. */
  async cancelling(): Promise<Caught> {
    const caught = await this.reviewing();
    const { api } = this.scene;
    const run = await this.#isIn(caught.number, 'reviewing');
    for (const { pid } of agentServersUnder(this.scene.place.root)) process.kill(pid, 'SIGSTOP');
    await api.post(`/runs/${run.runId}/cancel`);
    await this.#isIn(caught.number, 'cancelling');
    this.caught.splice(this.caught.indexOf(caught), 1);
    return this.#keep(caught.number, 'cancelling', caught.release);
  }

  /** Resolves when an event reports the run of this pull request in `state`. */
  entered(number: number, state: ReviewRunState): Promise<void> {
    const { events, api } = this.scene;
    return new Promise((resolve, reject) => {
      api.pull(number).then((found) => {
        const [run] = found?.runs ?? [];
        const check = () => {
          const hasEntered = events.events.some(
            ({ kind, data }) => kind === 'run.changed' && data['runId'] === run?.runId && data['state'] === state,
          );
          if (!hasEntered) return;
          off();
          resolve();
        };
        const off = events.on(check);
        check();
      }, reject);
    });
  }

  async kill(victim: Victim): Promise<void> {
    const { backends, place } = this.scene;
    const servers = agentServersUnder(place.root).map(({ pid }) => pid);
    if (victim === 'agent server') for (const pid of servers) killIfThere(pid);
    else await backends[0]?.end('SIGKILL');
    for (const { release } of this.caught) release();
    if (victim === 'agent server') return;
    for (const pid of servers) process.kill(pid, 'SIGCONT');
    await backends[0]?.start();
  }
}
