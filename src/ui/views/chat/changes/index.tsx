/** Changes of a turn, or of a whole thread: shown side by side, kept or reverted file by file. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { plural, visible } from '../../../../lib/browser.ts';
import { conflictWords, outsideWords } from '../../../../protocol/browser.ts';
import type { FileDiff } from '../../../../protocol/index.ts';
import { href } from '../../../app/router.ts';
import { Confirm } from '../../../parts/dialog.tsx';
import { Empty, Skeleton } from '../../../parts/empty.tsx';
import { Banner } from '../../../parts/state-banner.tsx';
import { wordsOf } from '../data/call-words.ts';
import type { Conversation } from '../data/conversation.ts';
import { type Cursor, lensAt } from '../lens/cursor.ts';
import { Uncovered } from '../rows/uncovered.tsx';
import { ChangeReview } from './change-review.ts';
import './changes.css';
import { ConflictList } from './conflict-list.tsx';
import { FileCard } from './file-card.tsx';

export interface ChangesProps {
  readonly conversation: Conversation;
  readonly threadId: string;
  /** Shown turn, and the call whose file is marked. Without a turn: the whole thread. */
  readonly cursor: Cursor;
}

/** Files shown initially, and the least number that each press adds. */
const firstFiles = 50;
/** Files whose changes are open initially, and the most changed lines of such a file. */
const openFiles = 10;
const openLines = 400;

export function Changes({ conversation, threadId, cursor }: ChangesProps) {
  const { turn, call } = cursor;
  const row = turn !== undefined && call !== undefined ? conversation.transcript.tool(turn, call) : undefined;
  return (
    <section class="changes" aria-label="Changes">
      <header class="about">
        <h2 class="cut">Changes of {turn === undefined ? 'all turns' : visible(turn, { multiline: false })}</h2>
        {turn !== undefined && (
          <a class="quiet" href={href(lensAt(threadId, 'changes'))}>
            All turns
          </a>
        )}
      </header>
      <div class="scroll">
        <Body
          conversation={conversation}
          threadId={threadId}
          turnId={turn}
          path={row && (wordsOf(row).change?.path ?? undefined)}
        />
      </div>
    </section>
  );
}

interface BodyProps {
  readonly conversation: Conversation;
  readonly threadId: string;
  readonly turnId: string | undefined;
  /** File of the selected call. */
  readonly path: string | undefined;
}

function Body({ conversation, threadId, turnId, path }: BodyProps) {
  const { state } = conversation;
  if (state.hasTag('gone')) return <Empty title="This conversation does not exist" />;
  if (conversation.thread.value === null) return <Skeleton />;
  if (!conversation.hasFiles.value) {
    return (
      <Empty title="Files are not saved in this workspace">
        <p>The setting Checkpoints.Enabled is off.</p>
      </Empty>
    );
  }
  return <Review key={turnId} conversation={conversation} threadId={threadId} turnId={turnId} path={path} />;
}

function Review({ conversation, threadId, turnId, path }: BodyProps) {
  const review = useMemo(() => new ChangeReview(conversation, threadId, turnId ?? null), [conversation, turnId]);
  useEffect(() => () => review.close(), [review]);
  useNews(review, conversation);
  const { state } = review;
  const { lastError } = state.context;
  const diff = review.diff.value;
  return (
    <>
      {lastError !== null && (
        <Banner tone="danger">
          <p>{visible(lastError, { multiline: false })}</p>
          {state.matches('failed') && (
            <button type="button" onClick={() => review.send({ type: 'READ' })}>
              Try again
            </button>
          )}
        </Banner>
      )}
      {diff ? (
        <Files
          review={review}
          diff={diff}
          hasTurn={turnId !== undefined}
          path={path}
          isFixed={!conversation.canUndo.value}
        />
      ) : (
        state.hasTag('busy') && <Skeleton />
      )}
      {state.matches('conflicted') && <Conflicts review={review} />}
    </>
  );
}

/** Reads the changes again when a turn begins or ends, when any client restored files, and after a reconnection. */
function useNews(review: ChangeReview, conversation: Conversation): void {
  const isLive = conversation.state.hasTag('live');
  const { turnId } = conversation.state.context;
  const restores = conversation.restores.value;
  const isFirst = useRef(true);
  useEffect(() => {
    if (isLive && !isFirst.current) review.send({ type: 'READ' });
    isFirst.current = false;
  }, [review, isLive, turnId, restores]);
}

interface FilesProps {
  readonly review: ChangeReview;
  readonly diff: FileDiff;
  readonly hasTurn: boolean;
  readonly path: string | undefined;
  /** The changes are read-only, because no agent server is running. */
  readonly isFixed: boolean;
}

/** Whether the path in a call is a file of the diff. Models may also write absolute paths. */
const isFile = (path: string | undefined, file: string): boolean =>
  path !== undefined && (path === file || path.endsWith(`/${file}`) || path === `./${file}`);

function Files({ review, diff, hasTurn, path, isFixed }: FilesProps) {
  const [limit, setLimit] = useState(firstFiles);
  const sections = review.sections.value;
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    list.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest' });
  }, [path, sections]);
  const { kept, reverted } = review.state.context;
  const isBusy = review.state.hasTag('busy');
  const decisionOf = (path: string) => {
    if (reverted.some((each) => each.path === path)) return 'reverted';
    return kept.includes(path) ? 'kept' : null;
  };
  // A reverted file is not in the diff of all turns together: it is listed apart.
  const listed = new Set(sections.map(({ file }) => file.path));
  const gone = reverted.filter(({ path }) => !listed.has(path));
  const additions = sections.reduce((sum, { file }) => sum + file.additions, 0);
  const deletions = sections.reduce((sum, { file }) => sum + file.deletions, 0);
  return (
    <>
      <p class="sum" role="status">
        {sections.length === 0
          ? `${hasTurn ? 'This turn' : 'This conversation'} has changed no file`
          : `${sections.length.toLocaleString()} ${plural(sections.length, 'file')}, +${additions.toLocaleString()} −${deletions.toLocaleString()}`}
        {kept.length > 0 && `, ${kept.length} kept`}
        {reverted.length > 0 && `, ${reverted.length} put back`}
        {diff.isCut && '. More changed than is shown here'}
      </p>
      {sections.length > 0 && !isFixed && (
        <p class="quiet">
          <b>Revert</b> puts a file back as it was before{' '}
          {hasTurn ? 'this turn: later changes of it by this thread go, too' : 'the first turn'}. Changes that you or
          others made to it since are listed first. <b>Keep</b> changes nothing.
        </p>
      )}
      {diff.notCovered.length > 0 && (
        <div class="left">
          <p>Changed, but in no checkpoint: they cannot be shown or put back.</p>
          <Uncovered entries={diff.notCovered} total={diff.notCoveredTotal} />
        </div>
      )}
      <div class="files" ref={list}>
        {sections.slice(0, limit).map((section, index) => (
          <FileCard
            key={section.file.path}
            section={section}
            decision={decisionOf(section.file.path)}
            isBusy={isBusy}
            isFixed={isFixed}
            isCurrent={isFile(path, section.file.path)}
            isOpenAtFirst={index < openFiles && section.file.additions + section.file.deletions <= openLines}
            send={(event) => review.send(event)}
          />
        ))}
      </div>
      {gone.length > 0 && <PutBack review={review} files={gone} />}
      {sections.length > limit && (
        <button type="button" class="bare" onClick={() => setLimit(limit * 4)}>
          Show more ({(sections.length - limit).toLocaleString()} {plural(sections.length - limit, 'file')})
        </button>
      )}
      <p class="quiet">{outsideWords}</p>
    </>
  );
}

interface PutBackProps {
  readonly review: ChangeReview;
  readonly files: readonly { readonly path: string }[];
}

/** Files that were put back, and so are among the changes no more. */
function PutBack({ review, files }: PutBackProps) {
  return (
    <section class="put-back" aria-label="Put back">
      <p>Restored to their state before the first turn:</p>
      <ul class="mono">
        {files.slice(0, firstFiles).map(({ path }) => {
          const name = visible(path, { multiline: false });
          return (
            <li key={path}>
              {name}{' '}
              <button
                type="button"
                aria-label={`Take back ${name}`}
                disabled={review.state.hasTag('busy')}
                onClick={() => review.send({ type: 'TAKE_BACK', path })}
              >
                Take back
              </button>
            </li>
          );
        })}
      </ul>
      {files.length > firstFiles && <p>And {(files.length - firstFiles).toLocaleString()} more.</p>}
    </section>
  );
}

function Conflicts({ review }: { readonly review: ChangeReview }) {
  const { conflicts, conflictsTotal } = review.state.context;
  return (
    <Confirm
      title="Overwrite other changes?"
      action="Overwrite"
      cancel="Leave it"
      onClose={() => review.send({ type: 'LEAVE' })}
      onConfirm={() => review.send({ type: 'FORCE' })}
    >
      <p>{conflictWords(conflictsTotal)}:</p>
      <ConflictList conflicts={conflicts} total={conflictsTotal} />
    </Confirm>
  );
}
