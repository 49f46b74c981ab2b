/**
 * A fake container engine: programs `docker` and `docker-compose` on a PATH of their own that keep images, containers and volumes in a
 * file, play a scenario and record their calls. For tests of everything that runs an engine but is not about
 * engines; those are in `test/stack`.
 *
 * ```ts
 * const fake = fakeEngine(t, { images: ['oratorio'], services: { backend: { is: 'exits', log: ['no key'] } } });
 * const engine = await findEngine({ env: fake.env });   // or run the CLI with `env: { ...fake.env }`
 * await startServices(engine, layoutOf(directory), ['backend'], { recreate: true });
 * fake.calls('compose', 'up');                          // every call whose words contain these, in order
 * fake.change({ brokenImages: ['oratorio:2'] });        // from the next command on
 * ```
 *
 * It reads the compositions and the `.env` it is given, with the caller's environment before `.env`, as real ones do; a container is
 * in the scenario's state of its service right after its start.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Test } from 'tap';
import type { ServiceName } from '../../../src/deploy/stack-plan.ts';
import { programEnvironment } from '../../programs.ts';
import { clientSource, serveEngine } from './server.ts';

/** State of a container after its start. `unchecked`: it runs and has no health check. */
export type FakeBehaviour = 'healthy' | 'starting' | 'unhealthy' | 'unchecked' | 'exits' | 'restarts' | 'outOfMemory';

export interface FakeScenario {
  /** `stopped`: no daemon; `forbidden`: not in the group; `silent`: never answers. */
  readonly engine?: 'running' | 'stopped' | 'forbidden' | 'silent';
  readonly engineVersion?: string;
  readonly isRootless?: boolean;
  /** The engine says that it is podman. */
  readonly podman?: boolean;
  /** `v1` is a program of its own, and too old. */
  readonly compose?: 'v2' | 'v1' | 'none';
  /** On the machine from the start, without a registry that knows them. */
  readonly images?: readonly string[];
  /** Images that can be pulled; all others are refused. */
  readonly registry?: readonly string[];
  /** Content of an image: another text is another id and digest at the next pull or build. */
  readonly contents?: Readonly<Record<string, string>>;
  /** Services of these images exit when they are started. */
  readonly brokenImages?: readonly string[];
  readonly services?: Readonly<
    Partial<
      Record<
        ServiceName,
        {
          readonly is?: FakeBehaviour /** Until then it is `starting`. */;
          readonly afterLooks?: number;
          readonly log?: readonly string[];
        }
      >
    >
  >;
  /** Foreign containers that publish ports. */
  readonly others?: readonly {
    readonly name: string;
    readonly ports: readonly { readonly host: string; readonly hostPort: number; readonly containerPort: number }[];
  }[];
  /** Error that `config` reports. */
  readonly invalidComposition?: string;
  /** Error that the gateway reports for its file. */
  readonly invalidGateway?: string;
  /** Printed to standard error by every command: secrets, to see that they are taken out. */
  readonly leaks?: string;
  /** Answers to commands whose line (`docker compose … up --detach backend`) contains `when`, before anything else. The first that fits. */
  readonly answers?: readonly {
    readonly when: string;
    readonly exitCode?: number;
    readonly stdout?: string;
    readonly stderr?: string;
    /** Never ends by itself. */
    readonly hangs?: boolean;
  }[];
}

export interface FakeCall {
  readonly program: 'docker' | 'docker-compose';
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly pid: number;
}

export interface FakeEngine {
  /** Environment for programs: `PATH` with the fake programs first, and a home of its own. */
  readonly env: Readonly<Record<string, string>>;
  /** Where the programs are. */
  readonly bin: string;
  /** Calls whose words contain all of these, in the order in which they were made. */
  calls(...words: string[]): FakeCall[];
  /** All calls with their input: must never hold a secret in `args`. */
  record(): string;
  /** Changes the scenario from the next command on. */
  change(changes: FakeScenario): void;
  /** Containers that there are: service → status, image as composed and its id. */
  containers(): Partial<
    Record<
      ServiceName,
      { readonly id: string; readonly status: string; readonly image: string; readonly imageId: string }
    >
  >;
  /** Content of a volume, undefined without one. */
  volume(name: string): string | undefined;
  setVolume(name: string, content: string): void;
}

/** Makes one, in a directory that goes with the test. */
export function fakeEngine(t: Test, scenario: FakeScenario = {}): FakeEngine {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-fake-engine-'));
  const at = (...names: string[]): string => join(directory, ...names);
  const bin = at('bin');
  for (const name of ['bin', 'home', 'volumes']) mkdirSync(at(name));
  for (const name of ['docker', 'docker-compose'] as const) {
    writeFileSync(at('bin', name), clientSource(name, at('socket')), { mode: 0o755 });
  }
  let current = scenario;
  const write = (name: string, value: unknown): void => writeFileSync(at(name), JSON.stringify(value));
  const read = (name: string): string => readFileSync(at(name), 'utf8');
  write('scenario.json', current);
  const images = (scenario.images ?? []).map((reference) => ({ reference, id: idOf(reference), digest: null }));
  write('state.json', { images, containers: [] });
  writeFileSync(at('calls.jsonl'), '');
  const stop = serveEngine(directory, at('socket'));
  t.teardown(() => {
    stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    bin,
    env: { ...programEnvironment, PATH: [bin, process.env['PATH'] ?? ''].join(delimiter), HOME: at('home') },
    calls: (...words) => {
      // After the last line end is nothing, or an unfinished line.
      const all = read('calls.jsonl').split('\n').slice(0, -1);
      const calls = all.map((line): FakeCall => JSON.parse(line));
      return calls.filter(({ program: name, args }) => words.every((word) => name === word || args.includes(word)));
    },
    record: () => read('calls.jsonl'),
    change: (changes) => {
      current = { ...current, ...changes };
      write('scenario.json', current);
    },
    containers: () => {
      const { containers } = JSON.parse(read('state.json'));
      return Object.fromEntries(containers.map((each: { service: ServiceName }) => [each.service, each]));
    },
    volume: (name) => {
      try {
        return read(join('volumes', name));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    setVolume: (name, content) => writeFileSync(at('volumes', name), content),
  };
}

/** Digest that `digestOf` in `state.mjs` makes of an image without content. */
const idOf = (reference: string): string =>
  `sha256:${Buffer.from(`${reference} `).toString('hex').slice(-24).padStart(64, '0')}`;
