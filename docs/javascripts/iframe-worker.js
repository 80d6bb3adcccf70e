// Search without a server: a browser runs no Worker for a page that it opened as a file, so the
// search runs in a hidden frame instead.  Over http this does nothing.  The theme looks for the
// name IFrameWorker.
(() => {
  if (location.protocol !== "file:") return

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.appendChild(this.frame)
      const inner = this.frame.contentWindow
      const load = src => new Promise((resolve, reject) => {
        const script = inner.document.createElement("script")
        Object.assign(script, { src, onload: resolve, onerror: reject })
        inner.document.body.appendChild(script)
      })
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = (...urls) =>
        urls.reduce((before, src) => before.then(() => load(src)), Promise.resolve())
      this.loaded = load(new URL(url, location.href).href)
    }

    // The frame's script listens once it has loaded.
    postMessage(data) {
      const inner = this.frame.contentWindow
      this.loaded.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }

  window.IFrameWorker = window.Worker = IFrameWorker
})()
