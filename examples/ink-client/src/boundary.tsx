// What the hooks throw in rendering ends here: a session that can't be followed any more, a daemon that is gone.

import { Component, type ReactNode } from 'react'

export class Boundary extends Component<{ onFault: (fault: unknown) => void; children: ReactNode }> {
  override state = { failed: false }

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true }
  }

  override componentDidCatch(fault: unknown): void {
    this.props.onFault(fault)
  }

  override render(): ReactNode {
    return this.state.failed ? null : this.props.children
  }
}
