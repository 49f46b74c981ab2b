import { DeployError } from '../errors.ts';
import { readBackendConfig, type StackConfig } from '../files/index.ts';
import { missingFileHint, stackFiles } from '../layout.ts';
import type { FileText } from './stack-view.ts';

/** Settings of `oratorio.config.json` that the checks use. */
export interface ConfigView extends StackConfig {
  /** Where repositories are cloned from: `github.com`, or the host of an Enterprise server. */
  readonly gitHost: string;
}
export type RepositoryView = StackConfig['repositories'][number];

/** The configuration, or why it cannot be used. */
export function readConfig(text: FileText): ConfigView | DeployError {
  if (text === null) return new DeployError('notAStack', `${stackFiles.config} is missing.`, missingFileHint);
  if (text instanceof Error) return new DeployError('fileFailed', text.message);
  try {
    const config = readBackendConfig(text);
    const { hostname } = new URL(config.endpoint);
    return { ...config, gitHost: hostname === 'api.github.com' ? 'github.com' : hostname };
  } catch (error) {
    if (error instanceof DeployError) return error;
    throw error;
  }
}
