import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { visible } from '../../../lib/browser.ts';
import { writtenIn } from '../../../protocol/browser.ts';
import type { App } from '../../app/app.ts';
import { Glyph } from '../../parts/glyphs.tsx';
import { isComposing } from '../../parts/typing.ts';
import type { Conversation } from './data/conversation.ts';
import type { Row } from './data/rows.ts';

/** `given`: the user closed the search with Esc, so Ctrl F opens the browser's search. */
type SearchState = 'closed' | 'open' | 'given';

/** Search in a conversation, including rows that are not in the document, with its button and its key. */
export function Search({ app, conversation }: { readonly app: App; readonly conversation: Conversation }) {
  const state = useSignal<SearchState>('closed');
  useEffect(
    () =>
      app.commands.register([
        {
          id: 'chat.find',
          title: 'Search in this conversation',
          group: 'Chat',
          keys: ['Mod+f'],
          isEnabled: () => state.peek() !== 'given',
          run: () => {
            state.value = 'open';
            document.querySelector<HTMLInputElement>('.find input')?.select();
          },
        },
      ]),
    [app],
  );
  if (state.value === 'open') return <Open conversation={conversation} state={state} />;
  return (
    <button
      type="button"
      class="bare"
      aria-label="Search in this conversation"
      title="Search"
      onClick={() => {
        state.value = 'open';
      }}
    >
      <Glyph name="search" />
    </button>
  );
}

interface OpenProps {
  readonly conversation: Conversation;
  readonly state: Signal<SearchState>;
}

function Open({ conversation, state }: OpenProps) {
  const query = useSignal('');
  const field = useRef<HTMLInputElement>(null);
  const changes = conversation.transcript.changes.value;
  const wanted = query.value.trim().toLowerCase();
  const found = useMemo(
    () => (wanted === '' ? [] : conversation.transcript.rows.filter((row) => textOf(row).includes(wanted))),
    [wanted, changes],
  );
  const { key } = conversation.found.value;
  const at = found.findIndex((row) => row.key === key);
  const show = (index: number) => {
    conversation.found.value = { key: found.at(index % found.length)?.key ?? null };
  };
  const close = (next: SearchState) => {
    conversation.found.value = { key: null };
    state.value = next;
  };
  useEffect(() => {
    field.current?.focus();
    void conversation.loadAll();
  }, []);
  useEffect(() => {
    if (at < 0) show(-1);
  }, [wanted, found.length]);
  const step = (by: number) => found.length > 0 && show(at + by < 0 ? -1 : at + by);
  return (
    <search class="find">
      <input
        ref={field}
        type="search"
        aria-label="Search in this conversation"
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (isComposing(event) || (event.key !== 'Enter' && event.key !== 'Escape')) return;
          event.preventDefault();
          if (event.key === 'Escape') close('given');
          else step(event.shiftKey ? -1 : 1);
        }}
      />
      <span class="quiet" role="status">
        {wanted !== '' && (found.length === 0 ? 'No results' : `${at + 1} of ${found.length}`)}
      </span>
      <button type="button" class="bare" aria-label="Previous result" onClick={() => step(-1)}>
        <span aria-hidden="true">↑</span>
      </button>
      <button type="button" class="bare" aria-label="Next result" onClick={() => step(1)}>
        <span aria-hidden="true">↓</span>
      </button>
      <button type="button" class="bare" aria-label="Close the search" onClick={() => close('closed')}>
        <Glyph name="close" />
      </button>
    </search>
  );
}

/** Visible text of a row, in lower case. */
function textOf(row: Row): string {
  switch (row.kind) {
    case 'user':
      return visible(writtenIn(row.input)).toLowerCase();
    case 'answer':
    case 'notice':
      return visible(row.text).toLowerCase();
    case 'error':
      return visible(row.error.message).toLowerCase();
    case 'tool':
      return visible(row.argumentsText).toLowerCase();
    default:
      return '';
  }
}
