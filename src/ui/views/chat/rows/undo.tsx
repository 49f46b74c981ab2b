import { useEffect, useState } from 'preact/hooks';
import { conflictWords, outsideWords } from '../../../../protocol/browser.ts';
import type { Checkpoint } from '../../../../protocol/index.ts';
import { Confirm } from '../../../parts/dialog.tsx';
import { ConflictList } from '../changes/conflict-list.tsx';
import type { Conversation } from '../data/conversation.ts';
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
  const [checkpoint, setCheckpoint] = useState<Checkpoint>();
  useEffect(() => {
    // Without an answer, the undo reports the problem.
    conversation.checkpointBefore(turnId).then(setCheckpoint, () => setCheckpoint(undefined));
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
        <Left checkpoint={checkpoint} />
      </Confirm>
    );
  }
  return (
    <Confirm title="Undo this turn?" action="Undo" onClose={onClose} onConfirm={() => void undo(false)}>
      <p>
        This turn and those after it are taken back, and the files of the workspace return to their state before it.
      </p>
      <Left checkpoint={checkpoint} />
    </Confirm>
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
