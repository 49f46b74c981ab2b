/** Lenses of a conversation: changes, trace, states and events at one moment. */
import { computed, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { App } from '../../../app/app.ts';
import { Skeleton } from '../../../parts/empty.tsx';
import { usePart } from '../../../parts/use-part.ts';
import { createBodies } from '../../sessions/trace/bodies.ts';
import '../../sessions/trace/bars.css';
import '../../sessions/trace/reading.css';
import '../../sessions/trace/trace.css';
import { createTrace, type Trace } from '../../sessions/trace/store.ts';
import { Changes } from '../changes/index.tsx';
import type { Conversation } from '../data/conversation.ts';
import { type Cursor, cursorOf, type LensName, lenses, type MoveTo } from './cursor.ts';
import './lens.css';
import { NoStates } from './no-states.tsx';
import { lensId } from './tabs.tsx';
import { followCursor, spanAt } from './trace-cursor.ts';
import { TraceLens } from './trace-lens.tsx';

export { Scrubber } from './scrubber.tsx';

/** State that the lenses of one conversation share. */
export interface OpenLens {
  readonly trace: Trace;
  readonly cursor: ReadonlySignal<Cursor>;
  /** Moment of the cursor. For a call, the start of its run, which only the trace knows. Undefined: the end. */
  readonly at: ReadonlySignal<number | undefined>;
  readonly moveTo: MoveTo;
  /** Starts to follow the cursor. Returns a function that stops this. */
  start(): () => void;
}

export function openLens(app: App, threadId: string, moveTo: MoveTo): OpenLens {
  const trace = createTrace(app, threadId, 'waterfall');
  const { route } = app.router;
  const cursor = computed(() => cursorOf(route.value.query));
  const at = computed(() => {
    trace.version.value;
    const { value } = cursor;
    return value.call === undefined ? value.at : (spanAt(trace.model.value, value)?.start ?? value.at);
  });
  return {
    ...{ trace, cursor, at, moveTo },
    start() {
      const stops = [trace.start(), followCursor(trace, cursor, moveTo)];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}

interface LensProps {
  readonly app: App;
  readonly conversation: Conversation;
  readonly threadId: string;
  readonly lens: LensName;
  readonly open: OpenLens;
}

const fetchStates = () => import('./turn-states.tsx');

/** Selected lens. */
export function Lens({ app, conversation, threadId, lens, open }: LensProps) {
  const { trace, cursor } = open;
  const bodies = useMemo(() => createBodies(app, threadId), [app, threadId]);
  useEffect(() => {
    trace.view.value = lens === 'raw' ? 'list' : 'waterfall';
  }, [trace, lens]);
  return (
    <div class={`lens lens-${lens}`} id={lensId} role="tabpanel" aria-label={lenses[lens].title}>
      {lens === 'changes' && <Changes conversation={conversation} threadId={threadId} cursor={cursor.value} />}
      {(lens === 'trace' || lens === 'raw') && (
        <TraceLens app={app} trace={trace} bodies={bodies} threadId={threadId} />
      )}
      {lens === 'chart' && <States app={app} conversation={conversation} threadId={threadId} open={open} />}
    </div>
  );
}

function States({ app, conversation, threadId, open: { cursor, at } }: Omit<LensProps, 'lens'>) {
  const hasActors = app.page.value?.views.includes('actors') === true;
  const TurnStates = usePart(hasActors, fetchStates)?.default;
  const turn = useMemo(
    () =>
      computed(() => {
        conversation.transcript.changes.value;
        return cursor.value.turn ?? conversation.transcript.rows.at(-1)?.turnId;
      }),
    [conversation, cursor],
  );
  if (!hasActors) return <NoStates threadId={threadId} />;
  return TurnStates ? <TurnStates app={app} threadId={threadId} turn={turn} at={at} /> : <Skeleton />;
}
