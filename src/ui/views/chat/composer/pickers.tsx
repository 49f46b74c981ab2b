import type { Signal } from '@preact/signals';
import { messageOf } from '../../../../lib/browser.ts';
import type { ThreadConfig } from '../../../../protocol/index.ts';
import type { App } from '../../../app/app.ts';
import type { Conversation } from '../data/conversation.ts';
import { agentOfThread } from '../data/thread-agent.ts';
import type { ChatWorkspace } from '../data/workspace.ts';

const efforts = [
  'none',
  'minimal',
  'low',
  'medium',
  'high',
  'xhigh',
] as const satisfies readonly ThreadConfig['effort'][];

/** Model, effort and, for an external agent, mode of the conversation, from its next turn on. */
export function Pickers({
  app,
  chat,
  conversation,
  config,
}: {
  readonly app: App;
  readonly chat: ChatWorkspace;
  readonly conversation: Conversation;
  /** Settings of a conversation that has not begun. */
  readonly config: Signal<ThreadConfig>;
}) {
  const present = conversation.threadId === null ? config.value : (conversation.thread.value?.config ?? {});
  const set = (change: ThreadConfig) => {
    if (conversation.threadId === null) config.value = { ...config.peek(), ...change };
    else {
      conversation.configure(change).catch((error: unknown) => {
        app.toast({ text: `The setting was not changed: ${messageOf(error)}`, tone: 'danger' });
      });
    }
  };
  const { isOfWorkspace } = agentOfThread(chat.agent.value, present);
  const models = isOfWorkspace ? chat.models.value : [];
  const modes = isOfWorkspace ? chat.modes.value : [];
  const ids = models.map(({ id, provider }) => (id.includes('/') || !provider ? id : `${provider}/${id}`));
  const { model } = present;
  const known = model === undefined || ids.includes(model) ? ids : [model, ...ids];
  return (
    <div class="pickers">
      {known.length > 0 && (
        <select aria-label="Model" value={model ?? ''} onChange={(event) => set({ model: event.currentTarget.value })}>
          {model === undefined && <option value="">Model: default</option>}
          {known.map((id) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
      )}
      <select
        aria-label="Effort"
        value={present.effort ?? ''}
        onChange={(event) => {
          const effort = efforts.find((each) => each === event.currentTarget.value);
          if (effort) set({ effort });
        }}
      >
        {present.effort === undefined && <option value="">Effort: default</option>}
        {efforts.map((effort) => (
          <option key={effort} value={effort}>
            {effort}
          </option>
        ))}
      </select>
      {(modes.length > 0 || present.agentMode !== undefined) && (
        <select
          aria-label="Agent mode"
          value={present.agentMode ?? ''}
          onChange={(event) => set({ agentMode: event.currentTarget.value })}
        >
          {present.agentMode === undefined && <option value="">Mode: default</option>}
          {modes.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
