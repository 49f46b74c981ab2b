import { type BytePath, childOf } from './byte-path.ts';
import type { RestoreOp } from './directories.ts';
import { moveOf } from './git-move.ts';
import type { History, SavedTurn } from './history.ts';
import { isModulePath, nestedAt, type Repositories } from './repositories.ts';
import type { NestedMove, StoredRestore } from './restores.ts';
import { spansOf } from './spans.ts';

/**
 * Compares all repositories of a tree before and after turns. One that comes back or goes with its files has no move, unless the
 * files only name it: then it is compared again at the end.
 */
export async function movesOf(
  { history, repositories }: { readonly history: History; readonly repositories: Repositories },
  turns: readonly SavedTurn[],
  ops: readonly RestoreOp[],
): Promise<Pick<StoredRestore, 'git' | 'repositories'>> {
  const states = new Map<number, ReturnType<Repositories['at']>>();
  const stateAt = (seq: number) => {
    const state = states.get(seq) ?? repositories.at(history.gitAt(seq));
    states.set(seq, state);
    return state;
  };
  const spans = turns.flatMap((turn) => spansOf(history, turn)).sort((a, b) => a.startSeq - b.startSeq);
  const paths = new Set<BytePath>();
  for (const { startSeq, endSeq } of spans) {
    for (const seq of endSeq === null ? [startSeq] : [startSeq, endSeq]) {
      for (const path of Object.keys(stateAt(seq).nested)) if (!isModulePath(path)) paths.add(path);
    }
  }
  const planned = new Set(ops.map(({ path }) => path));
  const nested: NestedMove[] = [];
  for (const path of paths) {
    const known = [...states.values()].flatMap((state) => state.nested[path] ?? [])[0];
    const move = await moveOf(spans, (seq) => nestedAt(stateAt(seq), path, known), repositories.indexOf(path));
    const comesOrGoes = move && !('before' in move) && planned.has(childOf(path, '.git'));
    const before = stateAt(Math.min(...turns.map(({ startSeq }) => startSeq))).nested[path];
    if (move && !comesOrGoes) nested.push({ path, move });
    else if (comesOrGoes && before?.place?.kind === 'elsewhere')
      nested.push({ path, move: { before, after: before, parts: [] } });
  }
  const git = await moveOf(spans, (seq) => stateAt(seq).root, repositories.indexOf(''));
  return { git, repositories: nested };
}
