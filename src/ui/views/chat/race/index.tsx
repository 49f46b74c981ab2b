/** A race: attempts at the same prompt side by side. The user applies one of them to the workspace. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { dollars, visible } from '../../../../lib/browser.ts';
import { conflictWords, outsideWords } from '../../../../protocol/browser.ts';
import type { AgentChoice, ThreadSummary } from '../../../../protocol/index.ts';
import { href } from '../../../app/router.ts';
import { Confirm } from '../../../parts/dialog.tsx';
import { duration } from '../../../parts/format.ts';
import { Banner } from '../../../parts/state-banner.tsx';
import { ConflictList } from '../changes/conflict-list.tsx';
import type { Conversation } from '../data/conversation.ts';
import { lensAt } from '../lens/cursor.ts';
import { type Attempt, type AttemptFacts, attemptsOf, racesOf, readFacts, stateOf } from './attempts.ts';
import './race.css';
import { RaceForm } from './race-form.tsx';
import { RaceReview } from './race-review.ts';

export interface RaceProps {
  readonly conversation: Conversation;
  readonly threads: readonly ThreadSummary[] | null;
  /** Agents that an attempt may have. */
  readonly agents: readonly AgentChoice[];
  readonly threadId: string;
}

/** Most files of an attempt that are listed by name. */
const maxFiles = 8;

export function Race({ conversation, threads, agents, threadId }: RaceProps) {
  const attempts = attemptsOf(threads, threadId);
  const review = useMemo(() => new RaceReview(conversation, threadId), [conversation, threadId]);
  useEffect(() => () => review.close(), [review]);
  const { lastError } = review.state.context;
  const check = attempts[0]?.race.check;
  return (
    <section class="desk race" aria-label="Race">
      <header>
        <a class="to-chat" href={href({ view: 'chat', path: [threadId] })}>
          ‹ Conversation
        </a>
        <h1 class="cut">Race</h1>
      </header>
      <div class="scroll">
        {lastError !== null && (
          <Banner tone="danger">
            <p>{visible(lastError, { multiline: false })}</p>
          </Banner>
        )}
        {check === undefined ? (
          <RaceForm
            workspacePath={conversation.thread.value?.workspacePath ?? ''}
            agents={agents}
            races={racesOf(threads)}
          />
        ) : (
          <>
            <p>
              The first attempt is applied whose check succeeds: <code>{visible(check, { multiline: false })}</code>
            </p>
            <div class="attempts">
              {attempts.map((attempt) => (
                <AttemptCard
                  key={attempt.id}
                  conversation={conversation}
                  attempt={attempt}
                  isApplicable={!attempts.some(({ race }) => race.restoreId !== undefined)}
                  review={review}
                />
              ))}
            </div>
            <p class="quiet">
              Attempts work in files of their own, and stay until: <code>oratorio race --prune</code>
            </p>
            <p class="quiet">{outsideWords}</p>
          </>
        )}
      </div>
      {review.state.matches('conflicted') && <Refused review={review} />}
    </section>
  );
}

interface CardProps {
  readonly conversation: Conversation;
  readonly attempt: Attempt;
  /** Whether no attempt is applied. */
  readonly isApplicable: boolean;
  readonly review: RaceReview;
}

function AttemptCard({ conversation, attempt, isApplicable, review }: CardProps) {
  const { id, race, runtime, config } = attempt;
  const { restoreId } = race;
  const facts = useFacts(conversation, attempt);
  const isBusy = !review.state.matches('idle');
  // An attempt without an available agent was not begun, and has no files.
  const hasFiles = config?.workspaceOverride !== undefined;
  const [word, tone] = stateOf(attempt);
  const name = `Attempt ${race.number}`;
  return (
    <section class="attempt" aria-label={name}>
      <h2>{name}</h2>
      <dl>
        <dt>State</dt>
        <dd class={tone}>{word}</dd>
        <dt>Agent</dt>
        <dd>{visible(race.agent ?? config?.agent ?? 'that of the workspace', { multiline: false })}</dd>
        <dt>Model</dt>
        <dd>
          {visible(attempt.model ?? config?.model ?? 'the usual one', { multiline: false })}
          {config?.effort && `, ${config.effort} effort`}
        </dd>
        <dt>Time</dt>
        <dd>{facts?.durationMs == null ? '–' : duration(facts.durationMs)}</dd>
        <dt>Cost</dt>
        <dd>{facts?.costUsd == null ? '–' : dollars(facts.costUsd)}</dd>
      </dl>
      {race.failure && <p class="danger">{visible(race.failure.message, { multiline: false })}</p>}
      {hasFiles && facts && <Files facts={facts} />}
      <p>
        {hasFiles && <a href={href(lensAt(id, 'changes'))}>Changes</a>}{' '}
        <a href={href({ view: 'chat', path: [id] })}>Conversation</a>
      </p>
      {restoreId === undefined ? (
        <button
          type="button"
          disabled={isBusy || !isApplicable || !hasFiles || runtime.running}
          onClick={() => review.send({ type: 'APPLY', attemptId: id })}
        >
          Apply attempt {race.number}
        </button>
      ) : (
        <button type="button" disabled={isBusy} onClick={() => review.send({ type: 'UNDO', restoreId })}>
          Undo attempt {race.number}
        </button>
      )}
    </section>
  );
}

/** Facts of an attempt, read again when its state has changed. */
function useFacts(conversation: Conversation, { id, race, runtime }: Attempt): AttemptFacts | null {
  const [facts, setFacts] = useState<AttemptFacts | null>(null);
  const isLive = conversation.state.hasTag('live');
  useEffect(() => {
    if (!isLive) return;
    let isLeft = false;
    readFacts(conversation, id).then(
      (found) => !isLeft && setFacts(found),
      // Deleted meanwhile, or the connection is gone: the dashes stay until the next change.
      () => undefined,
    );
    return () => {
      isLeft = true;
    };
  }, [conversation, id, isLive, race.state, runtime.running]);
  return facts;
}

function Files({ facts: { diff } }: { readonly facts: AttemptFacts }) {
  const more = diff.files.length - maxFiles;
  if (diff.files.length === 0) return <p class="quiet">No files changed.</p>;
  return (
    <ul class="mono">
      {diff.files.slice(0, maxFiles).map(({ path, additions, deletions }) => (
        <li key={path}>
          {visible(path, { multiline: false })} <span class="ok">+{additions.toLocaleString()}</span>{' '}
          <span class="danger">−{deletions.toLocaleString()}</span>
        </li>
      ))}
      {more > 0 && <li>{more.toLocaleString()} more</li>}
    </ul>
  );
}

function Refused({ review }: { readonly review: RaceReview }) {
  const { conflicts, conflictsTotal, order } = review.state.context;
  return (
    <Confirm
      title="Overwrite other changes?"
      action="Overwrite"
      cancel="Leave it"
      onClose={() => review.send({ type: 'LEAVE' })}
      onConfirm={() => review.send({ type: 'FORCE' })}
    >
      <p>{conflictWords(conflictsTotal, order?.kind === 'undo' ? 'restored' : 'merged')}:</p>
      <ConflictList conflicts={conflicts} total={conflictsTotal} />
    </Confirm>
  );
}
