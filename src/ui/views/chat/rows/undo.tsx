import { useEffect, useState } from 'preact/hooks';
import { count, visible } from '../../../../lib/browser.ts';
import { conflictWords, outsideWords } from '../../../../protocol/browser.ts';
import type { Checkpoint } from '../../../../protocol/index.ts';
import { Confirm } from '../../../parts/dialog.tsx';
import { ConflictList } from '../changes/conflict-list.tsx';
import type { Conversation, Undone } from '../data/conversation.ts';
import type { Refusal } from '../data/rpc.ts';
import { Uncovered } from './uncovered.tsx';

interface UndoProps {
  readonly conversation: Conversation;
  readonly turnId: string;
  readonly onClose: () => void;
}

/** Asks before the undo of a turn and those after it, and before changes of others are overwritten. */
export function Undo({ conversation, turnId, onClose }: UndoProps) {
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [undone, setUndone] = useState<Undone>();
  useEffect(() => {
    // Without an answer, the undo reports the problem.
    conversation.undoneBy(turnId).then(setUndone, () => setUndone(undefined));
  }, [conversation, turnId]);
  const undo = async (force: boolean) => {
    const refused = await conversation.undo(turnId, force);
    if (refused) setRefusal(refused);
    else onClose();
  };
  if (refusal) {
    return (
      <Confirm title="Overwrite other changes?" action="Overwrite" onClose={onClose} onConfirm={() => void undo(true)}>
        <p>{conflictWords(refusal.conflictsTotal)}, and not by this conversation:</p>
        <ConflictList conflicts={refusal.conflicts} total={refusal.conflictsTotal} />
        <Left checkpoint={undone?.checkpoint} />
      </Confirm>
    );
  }
  return (
    <Confirm title="Undo this turn?" action="Undo" onClose={onClose} onConfirm={() => void undo(false)}>
      <p>
        This turn and those after it are taken back, and the files of the workspace return to their state before it.
      </p>
      {undone && <Files paths={undone.files} />}
      <Left checkpoint={undone?.checkpoint} />
    </Confirm>
  );
}

/** Most files that are listed by name. */
const maxListed = 20;

/** Files that an undo changes. */
function Files({ paths }: { readonly paths: readonly string[] }) {
  if (paths.length === 0) return <p>No file changes.</p>;
  return (
    <>
      <p>{count(paths.length, 'file')}:</p>
      <ul class="mono">
        {paths.slice(0, maxListed).map((path) => (
          <li key={path}>{visible(path, { multiline: false })}</li>
        ))}
      </ul>
      {paths.length > maxListed && <p>And {(paths.length - maxListed).toLocaleString()} more.</p>}
    </>
  );
}

/** Entries that an undo does not change. */
function Left({ checkpoint }: { readonly checkpoint: Checkpoint | undefined }) {
  const { notCovered = [], notCoveredTotal = 0 } = checkpoint ?? {};
  return (
    <>
      {notCovered.length > 0 && (
        <>
          <p>Not covered, so they do not change:</p>
          <Uncovered entries={notCovered} total={notCoveredTotal} />
        </>
      )}
      <p class="quiet">{outsideWords}</p>
    </>
  );
}
