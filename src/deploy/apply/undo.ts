import { DeployError } from '../errors.ts';
import type { ServiceName } from '../stack-plan.ts';
import type { Tools } from './carry-out.ts';
import type { ChangeState, StepState } from './change-state.ts';
import type { StepRecord } from './entries.ts';
import { stepFailure } from './failures.ts';
import type { FoundFile } from './stack-files.ts';

/** A step that could not be reverted, with the reason. */
export interface UndoProblem {
  readonly key: string;
  readonly error: DeployError;
}

/**
 * Puts everything back to how it was before the change, the last step first; then the services that ran before run again,
 * with the files of before. A step that cannot be undone does not stop the others. Can be repeated after a kill.
 *
 * @param failure why
 */
export async function undoSteps(tools: Tools, { code, message }: DeployError): Promise<readonly UndoProblem[]> {
  const { log } = tools;
  const problems = new Map<string, UndoProblem>();
  const attempt = async (key: string, what: StepRecord['do'], work: () => void | Promise<void>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      problems.set(key, { key, error: stepFailure(error, what, key) });
      return false;
    }
  };
  // Where the journal cannot be written everything is still put back, and again by the next command.
  const note = (fact: Parameters<typeof log.note>[0]) => attempt('journal', 'writeFile', () => log.note(fact));
  await attempt('reserve', 'removeFile', () => log.backup.spendReserve());
  await note({ type: 'undoing', failure: { code, message } });
  const restoresState = mustRestoreState(log.state);
  for (const known of [...log.state.steps.values()].reverse()) {
    if (known.state === 'undone') continue;
    const isBack = await attempt(known.key, known.step.do, () => rollback(known, tools, restoresState));
    if (isBack) await note({ type: 'undid', key: known.key });
  }
  if (log.state.mustRestart && (await attempt('restart', 'start', () => restart(tools))))
    await note({ type: 'restarted' });
  return [...problems.values()];
}

/** One error of all that could not be put back. */
export function undoFailure(problems: readonly UndoProblem[], reason: string, backup: string): DeployError {
  const parts = problems.map(({ key, error }) => `${key} (${error.message})`);
  return new DeployError(
    'undoFailed',
    `${reason} Not every change could be undone: ${parts.join('; ')}`,
    `The former files are in ${backup}.`,
    { cause: problems.length === 1 ? problems[0]?.error : new AggregateError(problems.map(({ error }) => error)) },
  );
}

/**
 * Whether a backend that was started after the save may have changed its state. Otherwise the state has changed
 * without this command, and restoring the saved one would lose later changes.
 */
function mustRestoreState({ steps }: ChangeState): boolean {
  const order = [...steps.values()];
  const saved = order.findIndex(({ step, state }) => step.do === 'saveState' && state === 'did');
  return saved >= 0 && order.slice(saved).some(({ step }) => step.do === 'start' && step.services.includes('backend'));
}

type TakeBack<D extends StepRecord['do']> = (
  step: Extract<StepRecord, { readonly do: D }>,
  known: StepState,
  tools: Tools,
  restoresState: boolean,
) => Promise<void>;

function rollback(known: StepState, tools: Tools, restoresState: boolean): Promise<void> {
  const undo = undoers[known.step.do] as TakeBack<StepRecord['do']> | undefined;
  return undo ? undo(known.step, known, tools, restoresState) : Promise.resolve();
}

/** Steps that are not here have left nothing. */
const undoers: { readonly [D in StepRecord['do']]?: TakeBack<D> } = {
  async makeDirectory({ path }, { former }, { log }) {
    if (former.kind === 'absent') log.files.removeDirectory(path);
    if (former.kind === 'directory') log.files.makeDirectory(path, former.mode);
  },
  async writeFile({ path }, known, tools) {
    restore(path, known, tools);
  },
  async removeFile({ path }, known, tools) {
    restore(path, known, tools);
  },
  async clone(step, { former }, { effects, options }) {
    if (former.kind === 'absent') await effects.undoClone(step, options);
  },
  async giveTo(step, { former }, { log, effects, options }) {
    if (former.kind !== 'directory' || log.files.find(step.path).kind === 'absent') return;
    const { uid, gid } = former;
    if (uid !== step.uid || gid !== step.gid) await effects.giveTo({ ...step, uid, gid }, options);
  },
  async saveState(_, __, { log, effects, options }, restoresState) {
    if (restoresState) await effects.restoreState(log.backup.statePath, options);
  },
  async start({ services }, _, { log, effects, options }, restoresState) {
    const { before } = log.state;
    // Services that ran before are replaced at the end; until then they must not write to restored data.
    const removed = restoresState ? services : services.filter((service) => before?.includes(service) === false);
    if (removed.length > 0) await effects.removeServices({ do: 'removeServices', services: removed }, options);
  },
};

/** Restores a file. Later changes of another program are saved beside it. */
function restore(path: string, { former, written }: StepState, { log, options }: Tools): void {
  const { files, backup } = log;
  const found = files.find(path);
  if (former.kind !== 'file' && former.kind !== 'absent') return;
  if (found.kind === 'directory') throw new DeployError('fileFailed', `${files.pathOf(path)} is a directory.`);
  if (found.kind === 'file') {
    if (former.kind === 'file' && isAsBefore(found, former)) return;
    const isKnown = written.includes(found.hash) || (former.kind === 'file' && found.hash === former.hash);
    if (!isKnown)
      options.onLine(
        `${files.pathOf(path)} was changed meanwhile; the changed file is saved as ${backup.keepFound(path, found)}`,
      );
  }
  if (former.kind === 'absent') {
    files.remove(path);
    return;
  }
  const { file, content } = backup.read(path, former.hash);
  files.restore(path, file, content, former);
}

function isAsBefore(found: FoundFile, former: { readonly hash: string; readonly mode: number }): boolean {
  return found.hash === former.hash && found.mode === former.mode;
}

/** Starts the services that ran before and were touched since, and waits until they are healthy: users query them next. */
async function restart({ log, effects, options }: Tools): Promise<void> {
  const { before, steps } = log.state;
  const touched = new Set([...steps.values()].flatMap(({ step }) => touchedBy(step)));
  const services: readonly ServiceName[] = (before ?? []).filter((service) => touched.has(service));
  if (services.length === 0) return;
  await effects.start({ do: 'start', services, recreate: true }, options);
  await effects.awaitHealthy({ do: 'awaitHealthy', services }, options);
}

/** The backend is stopped while its state is saved. */
const touchedBy = (step: StepRecord): readonly ServiceName[] =>
  step.do === 'saveState' ? ['backend'] : 'services' in step ? step.services : [];
