"""The report: costs, rooflines, advice and measurements of ops on one page, each number with its provenance.

``schema`` checks a document against a JSON schema · ``results`` reads measurements · ``boundaries`` the groupings
between which intensity lies · ``readings`` an op at a workload and machine · ``advice`` what would help, and by how
much · ``pipelines`` end to end · ``evidence`` the gate · ``model`` the page's content · ``gather`` fills it · ``marks``
where a number is from · ``mathml`` formulas · ``figure`` the plots · ``html`` and ``markdown`` the page.
"""
