import { useSignal } from '@preact/signals';
import { Confirm } from '../../parts/dialog.tsx';
import type { Action } from '../../parts/workspace-acts.ts';
import type { Workspaces } from './workspaces.ts';

/** Runs actions on workspaces, and returns the question to show before a stop. */
export function useStopQuestion(store: Workspaces) {
  const stopping = useSignal<string | undefined>(undefined);
  const close = () => {
    stopping.value = undefined;
  };
  const act = (action: Action, path: string) => {
    if (action === 'stop') stopping.value = path;
    else void store.act(action, path);
  };
  const path = stopping.value;
  const question =
    path === undefined ? null : (
      <Confirm
        title="Stop this agent server?"
        action="Stop it"
        onClose={close}
        onConfirm={() => {
          void store.act('stop', path);
          close();
        }}
      >
        <p>
          <code>{path}</code>
        </p>
        <p>Turns that run in it are cancelled. Conversations and traces stay.</p>
      </Confirm>
    );
  return { act, question };
}
