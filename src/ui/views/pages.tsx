import { Logo } from './icons.tsx';

/** Whoever has no token learns how to get one. */
export function NoToken({ reason }: { readonly reason: string }) {
  return (
    <main class="page">
      <Logo />
      <h1>Open the inspector from a terminal</h1>
      <p>{reason} The link with a fresh one is printed, and opened, by</p>
      <Command text="oratorio inspect" />
      <p class="quiet">The token stays in this tab. It is never sent to anybody but the Hub on this machine.</p>
    </main>
  );
}

export function NoWorkspaces() {
  return (
    <div class="hint">
      <p>No workspace yet. Start an agent server for one:</p>
      <Command text="oratorio up <dir>" />
    </div>
  );
}

export function NoTurns() {
  return (
    <div class="hint">
      <p>No turn runs in this workspace. Say something:</p>
      <Command text='oratorio chat "hello"' />
    </div>
  );
}

function Command({ text }: { readonly text: string }) {
  return (
    <p class="command">
      <code>{text}</code>
    </p>
  );
}
