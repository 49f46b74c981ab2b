import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StepEffects } from '../../../src/deploy/apply/index.ts';
import { stepKey } from '../../../src/deploy/apply/step-keys.ts';
import { layoutOf, stackFiles } from '../../../src/deploy/layout.ts';
import type { ServiceName, Step } from '../../../src/deploy/stack-plan.ts';

/** A container engine as far as a change can see it. */
export interface World {
  /** Hash of the files that each running service was started with. */
  readonly services: Partial<Record<ServiceName, string>>;
  readonly images: readonly string[];
  /** Database of the backend. A newer backend changes it as soon as it runs. */
  readonly database: string;
}

export interface FakeOptions {
  /** Throws to let a step fail, also one that takes something back: `undo clone:workspace/a`. */
  readonly before?: (key: string, signal: AbortSignal) => void | Promise<void>;
}

/** One stack and its engine, on disk: both survive a kill. */
export class FakeEngine {
  readonly stack: string;
  readonly #file: string;

  constructor(directory: string) {
    this.stack = join(directory, 'stack');
    this.#file = join(directory, 'world.json');
  }

  get world(): World {
    if (!existsSync(this.#file)) return { services: {}, images: [], database: 'v1' };
    return JSON.parse(readFileSync(this.#file, 'utf8'));
  }

  set world(world: World) {
    writeFileSync(`${this.#file}.new`, JSON.stringify(world));
    renameSync(`${this.#file}.new`, this.#file);
  }

  effects({ before = () => {} }: FakeOptions = {}): StepEffects {
    const stepped =
      <S extends Step>(work: (step: S) => void, prefix = '') =>
      async (step: S, { signal }: { readonly signal: AbortSignal }) => {
        await before(prefix + stepKey(step), signal);
        work(step);
      };
    const named =
      (key: string, work: (path: string) => void) =>
      async (path: string, { signal }: { readonly signal: AbortSignal }) => {
        await before(key, signal);
        work(path);
      };
    return {
      running: async () => Object.keys(this.world.services).sort() as ServiceName[],
      clone: async (step, { signal, onLine }) => {
        await before(stepKey(step), signal);
        onLine(`Cloning ${step.repository}`);
        return this.#clone(step.path);
      },
      undoClone: stepped(({ path }) => rmSync(join(this.stack, path), { recursive: true, force: true }), 'undo '),
      giveTo: stepped(() => {}),
      checkPorts: stepped(() => {}),
      pullImages: stepped(({ services }) => this.#addImages(services)),
      checkComposition: async ({ signal }) => before('checkComposition', signal),
      checkGateway: async ({ signal }) => before('checkGateway', signal),
      saveState: named('saveState', (into) => writeFileSync(join(into, 'database'), this.world.database)),
      restoreState: named('restoreState', (from) => this.#restore(from)),
      start: stepped(({ services }) => this.#start(services)),
      removeServices: stepped(({ services }) => this.#remove(services)),
      awaitHealthy: stepped(() => {}),
    };
  }

  #clone(path: string): 'done' | 'kept' {
    const target = join(this.stack, path);
    if (existsSync(target)) return 'kept';
    const half = `${target}.half`;
    rmSync(half, { recursive: true, force: true });
    mkdirSync(half);
    writeFileSync(join(half, 'README.md'), path);
    renameSync(half, target);
    return 'done';
  }

  #addImages(images: readonly string[]): void {
    this.world = { ...this.world, images: [...new Set([...this.world.images, ...images])].sort() };
  }

  #start(services: readonly ServiceName[]): void {
    this.#mustKnow(services);
    const files = [stackFiles.compose, stackFiles.env, stackFiles.images, stackFiles.overlay, stackFiles.caddyfile];
    const contents = files
      .map((path) => join(this.stack, path))
      .map((path) => (existsSync(path) ? readFileSync(path) : ''));
    const hash = createHash('sha256').update(contents.join('\n--\n')).digest('hex').slice(0, 12);
    const started = Object.fromEntries(services.map((service) => [service, hash]));
    const isNew = contents.some((content) => content.includes('backend@v2'));
    const database = isNew && services.includes('backend') ? 'v2' : this.world.database;
    this.world = { ...this.world, services: { ...this.world.services, ...started }, database };
  }

  #remove(services: readonly ServiceName[]): void {
    this.#mustKnow(services);
    const left = Object.entries(this.world.services).filter(([service]) => !services.includes(service as ServiceName));
    this.world = { ...this.world, services: Object.fromEntries(left) };
  }

  #restore(from: string): void {
    if (this.world.services.backend) throw new Error('the backend runs on the database that is put back');
    this.world = { ...this.world, database: readFileSync(join(from, 'database'), 'utf8') };
  }

  /** A composition tool knows only services of files that are there. */
  #mustKnow(services: readonly ServiceName[]): void {
    const { overlay } = layoutOf(this.stack);
    if (services.includes('webhook-gateway') && !existsSync(overlay))
      throw new Error('no such service: webhook-gateway');
  }
}
