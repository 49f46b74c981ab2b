import { type ReadonlySignal, type Signal, useSignal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { messageOf as textOfError, visible } from '../../../../lib/browser.ts';
import { writtenIn } from '../../../../protocol/browser.ts';
import type { InputPart, ThreadConfig } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import { Glyph } from '../../../parts/glyphs.tsx';
import { entersLines, isComposing } from '../../../parts/typing.ts';
import type { Conversation } from '../data/conversation.ts';
import { draftOf, keepDraft, keepPictures, takePictures } from '../data/drafts.ts';
import { agentOfThread } from '../data/thread-agent.ts';
import type { ChatWorkspace } from '../data/workspace.ts';
import { Picture } from '../rows/picture.tsx';
import { useDrop } from './drop.ts';
import { isPicture, maxPictures, pictureOf } from './images.ts';
import { excessOf, messageOf, picturesIn } from './message.ts';
import { Pickers } from './pickers.tsx';
import { filesOf, mentionBefore, type Offer, offerFor } from './suggestions.ts';

interface ComposerProps {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
}

/**
 * Text box of a conversation. Enter sends, or queues while a turn runs; Ctrl+Enter sends to the running turn; Esc stops it. On a phone
 * Enter makes a line.
 */
export function Composer({ app, chat, conversation }: ComposerProps) {
  const form = useRef<HTMLFormElement>(null);
  const box = useRef<HTMLTextAreaElement>(null);
  const config = useSignal<ThreadConfig>({});
  const list = useId();
  const state = conversation.state;
  const isRunning = state.context.turnId !== null;
  const isGone = state.hasTag('gone');
  const { text, pictures, write, take, giveBack, attach } = useMessage(app, chat, conversation);
  const { offer, chosen, look, accept } = useSuggestions(chat, conversation, box, text, write);

  useHeight(box, text.value);
  useDrop(form, box, write, attach);
  const takeMessage = () => {
    const input = take();
    if (input) offer.value = null;
    return input;
  };
  const send = () => {
    const input = takeMessage();
    if (!input) return;
    if (conversation.threadId !== null) conversation.send(input);
    else chat.begin(conversation, input, config.peek()).catch((error: unknown) => giveBack(input, error));
  };
  const steer = async () => {
    if (!isRunning) return send();
    const input = takeMessage();
    if (input) await conversation.steer(input).catch((error: unknown) => giveBack(input, error));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (isComposing(event)) return;
    const shown = offer.peek()?.suggestions ?? [];
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (shown.length > 0 && step !== 0) chosen.value = (chosen.peek() + step + shown.length) % shown.length;
    else if (shown.length > 0 && (event.key === 'Tab' || event.key === 'Enter')) accept(chosen.peek());
    else if (shown.length > 0 && event.key === 'Escape') offer.value = null;
    else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void steer();
    else if (event.key === 'Enter' && !event.shiftKey && !entersLines()) send();
    else return;
    event.preventDefault();
  };

  const suggestions = offer.value?.suggestions ?? [];
  const isSteered = agentOfThread(chat.agent.value, conversation.thread.value?.config ?? {}).agent === null;
  return (
    <form
      ref={form}
      class="composer"
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <Suggestions id={list} suggestions={suggestions} chosen={chosen.value} accept={accept} />
      <Attached pictures={pictures} />
      <textarea
        ref={box}
        name="message"
        aria-label="Message"
        dir="auto"
        rows={1}
        placeholder={
          isRunning && !entersLines()
            ? `Enter queues, ${isSteered ? 'Ctrl+Enter adds to this turn, ' : ''}Esc stops`
            : 'Write to the agent'
        }
        value={text.value}
        disabled={isGone}
        autocomplete="off"
        enterkeyhint={entersLines() ? 'enter' : 'send'}
        aria-controls={suggestions.length > 0 ? list : undefined}
        aria-activedescendant={suggestions.length > 0 ? `${list}-${chosen.value}` : undefined}
        onInput={(event) => {
          write(event.currentTarget.value);
          look();
        }}
        onKeyDown={onKeyDown}
        onPaste={(event) => {
          const { clipboardData } = event;
          const files = [...(clipboardData?.files ?? [])].filter(isPicture);
          // Spreadsheets and word processors add a picture of the text.
          if (files.length === 0 || clipboardData?.types.includes('text/plain')) return;
          event.preventDefault();
          void attach(files);
        }}
      />
      <div class="tools">
        <Pickers chat={chat} conversation={conversation} config={config} app={app} />
        {isRunning && (
          <button type="button" disabled={state.hasTag('interrupting')} onClick={() => conversation.interrupt()}>
            Stop
          </button>
        )}
        <button type="submit" class="main" disabled={isGone}>
          Send
        </button>
      </div>
    </form>
  );
}

interface SuggestionsProps {
  readonly id: string;
  readonly suggestions: Offer['suggestions'];
  /** Index of the chosen suggestion. */
  readonly chosen: number;
  readonly accept: (index: number) => void;
}

function Suggestions({ id, suggestions, chosen, accept }: SuggestionsProps) {
  if (suggestions.length === 0) return null;
  return (
    <div class="offer" role="listbox" id={id} aria-label="Suggestions">
      {suggestions.map((suggestion, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the text box has the keys
        // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text box
        <div
          key={suggestion.text}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          onClick={() => accept(index)}
        >
          <b class="mono">{suggestion.text}</b> <span class="quiet cut">{suggestion.detail}</span>
        </div>
      ))}
    </div>
  );
}

/** Pictures of the message, each with a button that removes it. */
function Attached({ pictures }: { readonly pictures: Signal<readonly string[]> }) {
  if (pictures.value.length === 0) return null;
  return (
    <ul class="attached" aria-label="Pictures">
      {pictures.value.map((url, index) => (
        <li key={`${index} ${url}`}>
          <Picture url={url} />
          <button
            type="button"
            class="bare"
            aria-label={`Remove picture ${index + 1}`}
            onClick={() => {
              pictures.value = pictures.peek().filter((_, other) => other !== index);
            }}
          >
            <Glyph name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Text and pictures of the message. They are stored as a draft, and come back when they cannot be sent. */
function useMessage(app: App, chat: ChatWorkspace, conversation: Conversation) {
  const { threadId } = conversation;
  const [kept] = useState(() => ({ text: draftOf(threadId), pictures: takePictures(threadId) }));
  const text = useSignal(kept.text);
  const pictures = useSignal<readonly string[]>(kept.pictures);
  const write = (next: string) => {
    text.value = next;
    keepDraft(threadId, next);
  };
  const owner = useRef(threadId);
  useLayoutEffect(() => {
    if (owner.current === threadId) return;
    // The conversation was begun with the box: words written since belong to it.
    keepDraft(owner.current, '');
    keepDraft(threadId, text.peek());
    owner.current = threadId;
  }, [threadId]);
  useEffect(() => {
    conversation.onReturned = (input) => {
      write([writtenIn(input), text.peek()].filter((part) => part !== '').join('\n\n'));
      pictures.value = [...picturesIn(input), ...pictures.peek()].slice(0, maxPictures);
    };
    const leave = () => {
      // A message that begins a conversation has no thread that could keep it.
      const unsent = threadId === null ? unsentTexts(conversation) : [];
      keepDraft(threadId, [...unsent, text.peek()].filter(Boolean).join('\n\n'));
      keepPictures(threadId, pictures.peek());
    };
    addEventListener('pagehide', leave);
    return () => {
      removeEventListener('pagehide', leave);
      if (owner.current === threadId) keepPictures(threadId, pictures.peek());
    };
  }, [conversation]);

  const take = (): readonly InputPart[] | null => {
    const input = messageOf(text.peek(), pictures.peek(), chat.commands.peek());
    if (input.length === 0) return null;
    const excess = excessOf(input);
    if (excess !== null) {
      app.toast({ text: excess, tone: 'danger', ms: 12_000 });
      return null;
    }
    write('');
    pictures.value = [];
    return input;
  };
  const giveBack = (input: readonly InputPart[], error: unknown) => {
    conversation.onReturned?.(input);
    app.toast({ text: `Not sent: ${textOfError(error)}`, tone: 'danger' });
  };
  const attach = async (files: Iterable<File>) => {
    for (const file of files) {
      if (!isPicture(file)) {
        const name = visible(file.name, { multiline: false });
        const kind =
          file.type === '' ? 'is not a picture' : `is ${visible(file.type, { multiline: false })}, not a picture`;
        app.toast({ text: `${name} ${kind}: mention a file of the workspace with @ instead.`, tone: 'danger' });
        continue;
      }

      if (pictures.peek().length >= maxPictures) {
        app.toast({ text: `At most ${maxPictures} pictures fit a message.`, tone: 'danger' });
        return;
      }
      try {
        const picture = await pictureOf(file);
        pictures.value = [...pictures.peek(), picture];
      } catch {
        app.toast({ text: `${file.name} is not a readable picture.`, tone: 'danger' });
      }
    }
  };
  return { text, pictures, write, take, giveBack, attach };
}

/** Commands and files that complete the word at the cursor. */
function useSuggestions(
  chat: ChatWorkspace,
  conversation: Conversation,
  box: { readonly current: HTMLTextAreaElement | null },
  text: ReadonlySignal<string>,
  write: (next: string) => void,
) {
  const offer = useSignal<Offer | null>(null);
  const chosen = useSignal(0);
  const offerWith = (found: readonly string[]) => {
    const { selectionStart = 0 } = box.current ?? {};
    const files = () => [...new Set([...filesOf(conversation.transcript), ...found])];
    offer.value = offerFor(text.peek(), selectionStart, { commands: chat.commands.peek(), files });
    chosen.value = 0;
  };
  const mention = () => mentionBefore(text.peek(), box.current?.selectionStart ?? 0);
  const look = () => {
    offerWith([]);
    const query = mention();
    if (query === null) return;
    // Without an answer, the files named in the conversation are still offered; a banner reports a lost connection.
    const found = chat.files(conversation, query).catch((): readonly string[] => []);
    void found.then((paths) => {
      if (paths.length > 0 && mention() === query) offerWith(paths);
    });
  };
  const accept = (index: number) => {
    const suggestion = offer.peek()?.suggestions[index];
    const element = box.current;
    if (!suggestion || !element) return;
    const from = offer.peek()?.from ?? 0;
    write(text.peek().slice(0, from) + suggestion.text + text.peek().slice(element.selectionStart));
    offer.value = null;
    const cursor = from + suggestion.text.length;
    queueMicrotask(() => element.setSelectionRange(cursor, cursor));
    element.focus();
  };
  return { offer, chosen, look, accept };
}

const unsentTexts = (conversation: Conversation): readonly string[] =>
  conversation.unsent.peek().map(({ input }) => writtenIn(input));

/** Fits the height of the box to its text, up to the bound of the style sheet. */
function useHeight(box: { readonly current: HTMLTextAreaElement | null }, text: string): void {
  useLayoutEffect(() => {
    const element = box.current;
    const form = element?.form;
    if (!element || !form) return;
    // The form keeps its height meanwhile: a list above it that became taller would lose its place.
    form.style.height = `${form.offsetHeight}px`;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight + 2}px`;
    form.style.height = '';
  }, [text]);
}
