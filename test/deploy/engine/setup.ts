/** Setup for tests of operations: a fake engine that was found, and a stack on the disk. */
import type { Test } from 'tap';
import * as engines from '../../../src/deploy/engine/index.ts';
import type { StackLayout } from '../../../src/deploy/layout.ts';
import { type FakeEngine, type FakeScenario, fakeEngine } from '../fake-engine/index.ts';
import { type TestStackOptions, testStack } from '../fake-engine/stack.ts';

export interface Setup {
  readonly fake: FakeEngine;
  readonly engine: engines.Engine;
  readonly stack: StackLayout;
}

const images = ['oratorio', 'caddy:2.11.4-alpine'];

/** Found already: that it is, is the matter of another file. */
export function setUp(t: Test, scenario: FakeScenario = {}, options: TestStackOptions = {}): Setup {
  const fake = fakeEngine(t, { images, ...scenario });
  const found: engines.FoundEngine = {
    program: 'docker',
    composeProgram: ['docker', 'compose'],
    runtime: { kind: 'docker', version: '28.2.2', isRootless: false },
    compose: { version: '2.40.3' },
  };
  return { fake, engine: engines.engineOf(found, fake.env), stack: testStack(t, options) };
}
