import { useSignal } from '@preact/signals';
import { Confirm } from '../../parts/dialog.tsx';
import type { Action } from '../../parts/workspace-acts.ts';
import type { Shown, Workspaces } from './workspaces.ts';

/** Runs actions on workspaces, and returns the question to show before a stop. */
export function useStopQuestion(store: Workspaces) {
  const stopping = useSignal<Shown | undefined>(undefined);
  const close = () => {
    stopping.value = undefined;
  };
  const act = (action: Action, workspace: Shown) => {
    if (action === 'stop') stopping.value = workspace;
    else void store.act(action, workspace);
  };
  const workspace = stopping.value;
  const question =
    workspace === undefined ? null : (
      <Confirm
        title="Stop this agent server?"
        action="Stop it"
        onClose={close}
        onConfirm={() => {
          void store.act('stop', workspace);
          close();
        }}
      >
        <p>
          <code>{workspace.path}</code>
        </p>
        <p>Turns that run in it are cancelled. Conversations and traces stay.</p>
      </Confirm>
    );
  return { act, question };
}
