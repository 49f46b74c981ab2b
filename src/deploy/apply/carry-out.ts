import { DeployError } from '../errors.ts';
import type { Step } from '../stack-plan.ts';
import type { ChangeLog } from './change-log.ts';
import { type Former, recordOf } from './entries.ts';
import { hashOf, type StackEntry } from './stack-files.ts';
import type { Did, EffectOptions, StepEffects, StepOf } from './step-effects.ts';

/** Means by which steps are carried out. */
export interface Tools {
  readonly log: ChangeLog;
  readonly effects: StepEffects;
  readonly options: EffectOptions;
}

type Doer<D extends Step['do']> = (step: StepOf<D>, key: string, tools: Tools) => Promise<Did>;

/**
 * Does one step; writes the former state to disk first. A result that exists already stays.
 *
 * @returns `done` also when an earlier attempt of the change did it and was killed before it could say so
 * @throws any error of the step, which is taken back with the change
 */
export async function carryOut(step: Step, key: string, tools: Tools): Promise<Did> {
  const doer = doers[step.do] as Doer<Step['do']>;
  const result = await doer(step, key, tools);
  const known = tools.log.known(key);
  const wasThere = step.do === 'clone' && known?.former.kind !== 'absent';
  const did = result === 'kept' && known?.state === 'doing' && !wasThere ? 'done' : result;
  await tools.log.did(key, did);
  return did;
}

const doers: { readonly [D in Step['do']]: Doer<D> } = {
  async makeDirectory(step, key, tools) {
    const { files } = tools.log;
    const found = files.find(step.path);
    if (found.kind === 'directory' && found.mode === step.mode) return 'kept';
    await begin(step, key, tools, () => withoutContent(found));
    files.makeDirectory(step.path, step.mode);
    return 'done';
  },
  async writeFile(step, key, tools) {
    const { files } = tools.log;
    const found = files.find(step.path);
    const former = found.kind === 'file' ? found : undefined;
    if (former?.hash === hashOf(step.content) && former.mode === step.mode) return 'kept';
    await begin(step, key, tools, () => putAside(step.path, found, tools));
    files.write(step.path, step.content, step.mode, former);
    return 'done';
  },
  async removeFile(step, key, tools) {
    const { files } = tools.log;
    const found = files.find(step.path);
    if (found.kind === 'absent') return 'kept';
    await begin(step, key, tools, () => putAside(step.path, found, tools));
    files.remove(step.path);
    return 'done';
  },
  async clone(step, key, tools) {
    await begin(step, key, tools, () => withoutContent(tools.log.files.find(step.path)));
    return tools.effects.clone(step, tools.options);
  },
  async giveTo(step, key, tools) {
    await begin(step, key, tools, () => withoutContent(tools.log.files.find(step.path)));
    return done(tools.effects.giveTo(step, tools.options));
  },
  async saveState(step, key, tools) {
    // Saves once for a change: a later state may come from the services that the change has started.
    const steps = [...tools.log.state.steps.values()];
    if (steps.some(({ step, state }) => step.do === 'saveState' && state === 'did')) return 'kept';
    // The backend is stopped for it.
    await beginServices(step, key, tools);
    return done(tools.effects.saveState(tools.log.backup.makeState(), tools.options));
  },
  start: async (step, key, tools) => {
    await beginServices(step, key, tools);
    return done(tools.effects.start(step, tools.options));
  },
  removeServices: async (step, key, tools) => {
    await beginServices(step, key, tools);
    return done(tools.effects.removeServices(step, tools.options));
  },
  checkPorts: plain((step, { effects, options }) => effects.checkPorts(step, options)),
  pullImages: plain((step, { effects, options }) => effects.pullImages(step, options)),
  checkComposition: plain((_, { effects, options }) => effects.checkComposition(options)),
  checkGateway: plain((_, { effects, options }) => effects.checkGateway(options)),
  awaitHealthy: plain((step, { effects, options }) => effects.awaitHealthy(step, options)),
};

const nothing = (): Former => ({ kind: 'nothing' });

/** A step that leaves nothing to take back. */
function plain<D extends Step['do']>(work: (step: StepOf<D>, tools: Tools) => Promise<void>): Doer<D> {
  return async (step, key, tools) => {
    await begin(step, key, tools, nothing);
    return done(work(step, tools));
  };
}

async function done(work: Promise<void>): Promise<Did> {
  await work;
  return 'done';
}

/** Records the beginning of a step; of one that an earlier attempt has begun, that attempt recorded the former state. */
async function begin(step: Step, key: string, { log }: Tools, former: () => Former): Promise<void> {
  await log.doing(key, recordOf(step, hashOf), log.known(key)?.former ?? former());
}

/** Which services run is asked once, before the first of them is touched. */
async function beginServices(step: Step, key: string, tools: Tools): Promise<void> {
  const { log, effects, options } = tools;
  const running = log.state.mustRestart && log.state.before ? log.state.before : await effects.running(options);
  await begin(step, key, tools, () => ({ kind: 'services', running: [...running] }));
}

function withoutContent(found: StackEntry): Former {
  if (found.kind === 'absent') return found;
  const { mode, uid, gid } = found;
  return { kind: 'directory', mode, uid, gid };
}

function putAside(path: string, found: StackEntry, { log }: Tools): Former {
  if (found.kind === 'absent') return found;
  if (found.kind === 'directory') throw new DeployError('fileFailed', `${log.files.pathOf(path)} is a directory.`);
  log.backup.keep(path, found);
  const { hash, mode, uid, gid } = found;
  return { kind: 'file', hash, mode, uid, gid };
}
