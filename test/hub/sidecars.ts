/** Requests for sidecars: small programs that a test writes. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unusedPort } from '../ports.ts';
import { fixture, temporaryDirectory } from './harness.ts';

interface Teardown {
  teardown(callback: () => unknown): void;
}

export const standIn = `await import(${JSON.stringify(fixture('sidecars/stand-in.mjs'))});`;

/** A sidecar request whose binary runs `script`. */
export async function sidecar(t: Teardown, script = standIn) {
  const directory = temporaryDirectory(t);
  const [port, gatewayPort] = [await unusedPort(), await unusedPort()];
  const apiKey = `sk-sidecar-${port}-do-not-show`;
  const binaryPath = join(directory, 'proxy.mjs');
  const configPath = join(directory, 'config.json');
  writeFileSync(binaryPath, `#!${process.execPath}\n${script}\n`);
  writeFileSync(configPath, JSON.stringify({ port, gatewayPort, key: apiKey, hasChild: true }));
  chmodSync(binaryPath, 0o755);
  return { enabled: true, binaryPath, configPath, endpoint: `http://127.0.0.1:${port}`, apiKey };
}
